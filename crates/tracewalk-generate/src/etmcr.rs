//! The bits of ETMCR that change what a trace unit sends (IHI 0014Q, 3.5.1; IHI 0035B, 3.15.1), and every
//! combination of them.
//!
//! ```
//! use tracewalk_generate::etmcr::combinations;
//!
//! // Branch broadcast or not, cycle-accurate or not.
//! assert_eq!(combinations(&[1 << 8, 1 << 12], &[0]).len(), 4);
//! ```

/// The values of data transfers are traced.
pub const DATA_VALUES: u32 = 1 << 2;
/// The addresses of data transfers are traced.
pub const DATA_ADDRESSES: u32 = 1 << 3;
/// Every taken branch sends its address.
pub const BRANCH_BROADCAST: u32 = 1 << 8;
/// Cycles are counted.
pub const CYCLE_ACCURATE: u32 = 1 << 12;
/// The lowest bit of the field that selects how many bytes of the context ID are traced: 0, 1, 2 or 4.
pub const CONTEXT_ID: u32 = 14;
/// Returns to the newest address of the return stack are sent as atoms.
pub const RETURN_STACK: u32 = 1 << 29;

/// ETMIDR of a Cortex-A7 with the alternative encoding of addresses.
pub const ALTERNATIVE_ETMIDR: u32 = 0x411c_f250;

/// Every combination of `bits` with each value of the context ID size field. The last of `bits` changes
/// fastest, the context ID size slowest.
#[must_use]
pub fn combinations(bits: &[u32], context_ids: &[u32]) -> Vec<u32> {
    let mut all = context_ids.iter().map(|context_id| context_id << CONTEXT_ID).collect::<Vec<_>>();
    for bit in bits {
        all = all.iter().flat_map(|value| [*value, value | bit]).collect();
    }
    all
}
