//! Matches the files of now with those of a base, by name.

use std::collections::BTreeMap;

use super::super::paths::common_folder;
use super::super::tracefile::Tracefile;

/// For each file of now, its file in the base. Builds on different machines keep their files in different folders. If no file has
/// the same name, the match is the file at the same place under the folder that all files share, or else the file whose path
/// shares the longest end, of at least two names.
pub(super) fn partners<'a>(base: &'a Tracefile, now: &'a Tracefile) -> BTreeMap<&'a str, &'a str> {
    let (base_root, now_root) = (common_folder(base.files.keys()), common_folder(now.files.keys()));
    let mut partners = BTreeMap::new();
    for name in now.files.keys() {
        let inside = name.strip_prefix(now_root).unwrap_or(name);
        let elsewhere = format!("{base_root}{inside}");
        let same = base.files.get_key_value(name).or_else(|| base.files.get_key_value(&elsewhere));
        if let Some(partner) =
            same.map(|(partner, _)| partner.as_str()).or_else(|| most_alike(name, base, now))
        {
            partners.insert(name.as_str(), partner);
        }
    }
    partners
}

/// The file of the base whose path shares the longest end with `name`, if there is only one.
fn most_alike<'a>(name: &str, base: &'a Tracefile, now: &Tracefile) -> Option<&'a str> {
    let others = base.files.keys().filter(|other| !now.files.contains_key(*other));
    let mut ranked = others.map(|other| (common_end(name, other), other.as_str())).collect::<Vec<_>>();
    ranked.sort_unstable_by_key(|(parts, _)| std::cmp::Reverse(*parts));
    let (best, partner) = *ranked.first()?;
    let second = ranked.get(1).map_or(0, |(parts, _)| *parts);
    (best >= 2 && best > second).then_some(partner)
}

/// How many folders and names two paths have in common at their ends.
pub(super) fn common_end(a: &str, b: &str) -> usize {
    let parts = |path: &str| path.split('/').rev().map(str::to_owned).collect::<Vec<_>>();
    parts(a).iter().zip(&parts(b)).take_while(|(a, b)| a == b).count()
}
