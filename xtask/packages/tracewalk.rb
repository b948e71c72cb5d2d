class Tracewalk < Formula
  desc "Turns Arm CoreSight trace into what the program did"
  homepage "@repository@"
  version "@version@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@repository@/releases/download/v@version@/tracewalk-@version@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64-apple-darwin@"
    end
    on_intel do
      url "@repository@/releases/download/v@version@/tracewalk-@version@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@repository@/releases/download/v@version@/tracewalk-@version@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@repository@/releases/download/v@version@/tracewalk-@version@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "bin/tracewalk"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/completions/tracewalk.bash" => "tracewalk"
    zsh_completion.install "share/completions/_tracewalk"
    fish_completion.install "share/completions/tracewalk.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tracewalk --version")
  end
end
