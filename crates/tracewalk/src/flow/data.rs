//! Assigns data accesses to the instructions that made them.

use crate::directive::{Transfer, TransferValue};
use crate::ids::{Address, Location};
use crate::isa::{self, Access, Direction};
use crate::program::Program;

use super::element::DataTransfer;

/// The state between transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct DataState {
    /// The load or store of the last transfer, and the address after that transfer.
    last: Option<(Location, Address)>,
    /// Transfers whose value comes later, by tag.
    pending: [Option<DataTransfer>; 3],
}

impl DataState {
    /// The transfer, with its instruction: the load or store passed last. `None` if its value comes later.
    pub(super) fn transfer(
        &mut self,
        program: &Program,
        passed: Option<Location>,
        transfer: Transfer,
    ) -> Option<DataTransfer> {
        let access = passed.and_then(|at| access(program, at));
        let (instruction, access) = match (passed, access) {
            (Some(at), Some(access)) => (Some(at), Some(access)),
            // The instruction passed last accesses no memory: the transfer belongs to the last instruction
            // that does.
            _ => {
                let last = self.last.map(|(at, _)| at);
                (last, last.and_then(|at| self::access(program, at)))
            }
        };
        // The trace has the address of a load multiple once; the addresses of later transfers ascend.
        let follows = self.last.filter(|(at, _)| Some(*at) == instruction).map(|(_, following)| following);
        let address = transfer.address.or(follows);
        let bytes = access.map(|access| access.bytes);
        if let (Some(at), Some(address)) = (instruction, address) {
            let following = Location::new(address, at.isa).after(bytes.unwrap_or(4).into());
            self.last = Some((at, following.address));
        }
        let transfer = DataTransfer {
            instruction,
            address,
            value: transfer.value,
            bytes,
            store: access.map(|access| access.direction == Direction::Store),
            big_endian: transfer.big_endian,
        };
        match transfer.value {
            TransferValue::Pending(tag) => {
                *self.slot(tag)? = Some(transfer);
                None
            }
            _ => Some(transfer),
        }
    }

    /// The transfer that was pending under `tag`, with its value.
    pub(super) fn late(&mut self, tag: u8, value: u32) -> Option<DataTransfer> {
        let transfer = self.slot(tag)?.take()?;
        Some(DataTransfer { value: TransferValue::Value(value), ..transfer })
    }

    fn slot(&mut self, tag: u8) -> Option<&mut Option<DataTransfer>> {
        self.pending.get_mut(usize::from(tag).checked_sub(1)?)
    }
}

fn access(program: &Program, at: Location) -> Option<Access> {
    isa::classify(program.code(at.address)?, at.address, at.isa).ok()?.access
}
