//! The code that is visible in a context.

use super::regions::Regions;
use super::scope::Scope;

/// Memory that is visible in some contexts only.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) scope: Scope,
    pub(super) regions: Regions,
}

/// The code of `regions` and the parts that is visible in a context.
pub(super) fn visible(regions: &Regions, parts: &[Part], context: Scope) -> Regions {
    let visible = parts.iter().filter(|part| part.scope.includes(context.context_id, context.vmid));
    let mut regions = regions.clone();
    visible.flat_map(|part| part.regions.all()).for_each(|region| regions.cover(region));
    regions
}
