"""Reads a recorded run (testdata/firmware/README.md, "Records"), or a list of runs, for the scripts that compute what the tests
compare answers with. They share no code with tracewalk."""

# Exceptions that an instruction raises itself: faults and supervisor calls, which do not preempt (DDI 0403E, B1.5.2; IHI 0014Q,
# table 7.12; IHI 0064H, table 6-13).
SYNCHRONOUS = {"m": {3, 4, 5, 6, 7, 11, 12}, "ar": {2, 3, 5, 9, 10, 11, 12, 13}, "a64": {2, 3, 6, 7, 10, 11, 12}}


def lines(path, undefined=True):
    """The words of each line. A record counts an undefined instruction as executed, as ETMv3 and PFT do; for ETMv4, without
    `undefined`, it ends before that instruction, to which the exception returns (IHI 0064H, 5.2.4)."""
    found = [words for words in map(str.split, open(path)) if words and not words[0].startswith("#")]
    profile = next((words[1] for words in found if words[0] == "P"), None)
    for before, words, following in zip([["begin"], *found], found, [*found[1:], ["end"]]):
        if words[0] == "X" and words[2] == "-" and before[0] == "R":
            # Some lists leave out the return that the exception replaced.
            yield ["T"]
        if words[0] == "R" and not undefined and following[0] == "X" and int(following[1]) in SYNCHRONOUS[profile]:
            start, end = int(words[1], 16), int(words[2], 16)
            returns_to = int(following[2].replace("-", "0"), 16)
            if start <= returns_to < end:
                words[2:] = [following[2], words[3]] + [word for word in words[4:] if int(word[1:], 16) < returns_to]
                if start == returns_to:
                    continue
        yield words
