//! Paths of source files.

/// The folder that all paths have in common, with the slash after it.
pub fn common_folder<'a>(paths: impl IntoIterator<Item = &'a String>) -> &'a str {
    let mut paths = paths.into_iter();
    let Some(first) = paths.next() else { return "" };
    let mut common = first.rfind('/').map_or("", |end| &first[..=end]);
    for path in paths {
        while !path.starts_with(common) {
            let shorter = common.trim_end_matches('/').rfind('/');
            common = shorter.map_or("", |end| &common[..=end]);
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_folder_is_the_longest_that_all_paths_begin_with() {
        let common = |paths: &[&str]| {
            common_folder(&paths.iter().map(|&path| path.to_owned()).collect::<Vec<_>>()).to_owned()
        };
        assert_eq!(common(&["/a/src/x.c", "/a/src/y/z.c"]), "/a/src/");
        assert_eq!(common(&["/a/src/x.c", "/a/srcs/z.c"]), "/a/");
        assert_eq!(common(&["/x.c", "/y/z.c"]), "/");
        assert_eq!(common(&["x.c", "/y/z.c"]), "");
        assert_eq!(common(&["src/x.c"]), "src/");
        assert_eq!(common(&[]), "");
    }
}
