use super::*;
use tracewalk_analysis::coverage::DiffPath;

fn paths(text: &str) -> Vec<(Option<String>, Option<String>)> {
    let path = |path: Option<DiffPath>| path.map(|path| path.path);
    let files = read_source_diff(text.as_bytes()).unwrap().files;
    files.into_iter().map(|file| (path(file.old), path(file.new))).collect()
}

fn some(old: &str, new: &str) -> (Option<String>, Option<String>) {
    let path = |path: &str| (!path.is_empty()).then(|| path.to_owned());
    (path(old), path(new))
}

/// Git 2.39's diff of an added, a changed, a deleted and a renamed file, a new mode and a path with an umlaut and a space.
const GIT: &str = "\
diff --git a/added.c b/added.c
new file mode 100644
index 0000000..e965047
--- /dev/null
+++ b/added.c
@@ -0,0 +1 @@
+Hello
diff --git a/src/changed.c b/src/changed.c
index 8a1218a..4c479de 100644
--- a/src/changed.c
+++ b/src/changed.c
@@ -1,5 +1,4 @@ int before(void)
 one
-two
-three
+other
 four
 five
\\ No newline at end of file
diff --git a/deleted.c b/deleted.c
deleted file mode 100644
index e965047..0000000
--- a/deleted.c
+++ /dev/null
@@ -1 +0,0 @@
-Hello
diff --git a/old name.c b/lib/new.c
similarity index 100%
rename from old name.c
rename to lib/new.c
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git \"a/\\303\\244 b.c\" \"b/\\303\\244 b.c\"
index e965047..e69de29 100644
--- \"a/\\303\\244 b.c\"
+++ \"b/\\303\\244 b.c\"
@@ -1 +0,0 @@
-Hello
diff --git a/picture.png b/picture.png
index e965047..e69de29 100644
Binary files a/picture.png and b/picture.png differ
";

#[test]
fn files_of_git_have_their_paths_in_both_revisions() {
    let expected = [
        some("", "added.c"),
        some("src/changed.c", "src/changed.c"),
        some("deleted.c", ""),
        some("old name.c", "lib/new.c"),
        some("run.sh", "run.sh"),
        some("ä b.c", "ä b.c"),
        some("picture.png", "picture.png"),
    ];
    assert_eq!(paths(GIT), expected);
    let files = read_source_diff(GIT.as_bytes()).unwrap().files;
    assert!(files.iter().all(|file| file.new.iter().all(|path| !path.may_have_prefix)));
    assert_eq!(
        files.iter().map(|file| file.binary).collect::<Vec<_>>(),
        [false, false, false, false, false, false, true]
    );
    let hunk = &files[1].hunks[0];
    assert_eq!((hunk.at, hunk.old_first, hunk.new_first, hunk.lines.len()), (12, 1, 1, 6));
    // Without a line of the new revision, the hunk comes before the first line.
    assert_eq!((files[2].hunks[0].old_first, files[2].hunks[0].new_first), (1, 1));
    // The same with Windows line endings, and the text that a mail and a commit have around a diff.
    let mail = format!(
        "From 12 Mon Sep 17\nSubject: [PATCH] one\n---\n src/changed.c | 3 +-\n\n{GIT}-- \n2.39.5\n\n"
    );
    assert_eq!(paths(&mail).len(), expected.len());
    let moved = GIT.replace("a/src", "src").replace("b/src", "src");
    assert_eq!(paths(&moved)[1], some("src/changed.c", "src/changed.c"));
}

#[test]
fn files_of_other_programs_keep_their_folders() {
    let text = "--- fw-1.0/src/a.c\t2024-01-01 10:00:00.0 +0100\n+++ fw-1.1/src/a.c\t2024-02-01 10:00:00.0 +0100\n@@ -3 +3 @@\n-x\n+y\n";
    assert_eq!(paths(text), [some("fw-1.0/src/a.c", "fw-1.1/src/a.c")]);
    assert!(read_source_diff(text.as_bytes()).unwrap().files[0].new.as_ref().unwrap().may_have_prefix);
    assert_eq!(paths(""), []);
}

#[test]
fn what_is_no_diff_is_refused_with_its_line() {
    let error = |text: &str| {
        read_source_diff(text.as_bytes()).map(|_| ()).map_err(|error| {
            let kind = match error.kind {
                SourceDiffErrorKind::Line { .. } => "line",
                SourceDiffErrorKind::CutOff => "cut off",
                SourceDiffErrorKind::Misplaced => "misplaced",
                SourceDiffErrorKind::Combined => "combined",
            };
            (error.line, kind)
        })
    };
    let of = |hunks: &str| error(&format!("--- a/a.c\n+++ b/a.c\n{hunks}"));
    assert_eq!(error("fatal: bad revision 'main'\n"), Err((1, "line")));
    assert_eq!(error("\n<html>\n"), Err((2, "line")));
    assert_eq!(error("TN:\nSF:a.c\nend_of_record\n"), Err((1, "line")));
    assert_eq!(error("@@ -1 +1 @@\n-a\n+b\n"), Err((1, "line")));
    assert_eq!(error("diff --cc a.c\nindex 1,2..3\n"), Err((1, "combined")));
    assert_eq!(error("diff --git a/a.c b/a.c\nnonsense\n"), Err((2, "line")));
    assert_eq!(of("@@ -1 +1 @@\n-a\n+b\n"), Ok(()));
    assert_eq!(of(""), Err((2, "line")));
    assert_eq!(of("@@ -1,2 +1,2 @@\n a\n"), Err((4, "cut off")));
    assert_eq!(of("@@ -1,x +1 @@\n"), Err((3, "line")));
    assert_eq!(of("@@ -1 +1 @@\n-a\n+b\n+c\n"), Err((6, "line")));
    assert_eq!(of("@@ -1,2 +1 @@\n-a\n+b\n+c\n"), Err((6, "line")));
    // Four lines of one side come before the hunk, and three of the other.
    assert_eq!(of("@@ -5 +4 @@\n-a\n+b\n"), Err((3, "misplaced")));
    assert_eq!(of("@@ -1 +1 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n"), Err((6, "misplaced")));
    assert_eq!(of("@@ -0 +0 @@\n-a\n+b\n"), Err((3, "misplaced")));
}
