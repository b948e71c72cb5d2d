//! The active exceptions, and their evidence for the meaning of a return.
//!
//! ```text
//! an exception is taken: it is stacked on the code that it interrupted, a thread or a handler
//! a return:              the code below continues, or another handler replaces the one that returned
//! EXC_RETURN:            states whether the returning handler is stacked on a thread or on a handler
//! ```
//!
//! If a return leads to a handler, both are possible. Each possibility is an [`Account`], followed until an
//! EXC_RETURN contradicts it.

use alloc::vec::Vec;

use super::read::Step;
use crate::directive::{Directive, PreferredReturn};
use crate::ids::Address;

/// The most active exceptions remembered. Priorities never nest as deeply.
const DEEPEST: usize = 16;
/// The most accounts followed at once: those that are least odd.
const MOST_ACCOUNTS: usize = 8;
/// The number of exceptions and returns after which to stop waiting for a decision.
const MOST_TURNS: usize = 128;

/// The possible accounts of the active exceptions; empty if nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Nesting(Vec<Account>);

/// One hypothesis about the active exceptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Account {
    /// The code below the known exceptions.
    base: Base,
    /// The place where each known exception was taken, the outermost first; `None` if the trace does not show
    /// the place.
    active: Vec<Option<Address>>,
    /// The penalty for rare events in this account.
    odd: u32,
}

/// The kind of code that exceptions interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Base {
    #[default]
    Unknown,
    Thread,
    Handler,
}

/// Looks ahead for steps that decide whether the interrupted code continued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Look {
    /// The accounts in which the interrupted code continued.
    went_on: Vec<Account>,
    /// The accounts in which another exception was tail-chained.
    chained: Vec<Account>,
    /// Whether, in some account, the return led to the place where code was interrupted.
    is_on_record: bool,
    /// The number of exceptions and returns seen since.
    turns: usize,
    /// Whether later steps cannot contribute any more.
    is_over: bool,
}

impl Nesting {
    /// Takes the next step. Ambiguous returns go to [`Nesting::returned`].
    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Directive(Directive::Begin { .. } | Directive::Lost | Directive::Cut) => self.0.clear(),
            Step::Directive(Directive::Exception { .. }) | Step::Replaced { .. } => {
                self.0 = after(self.accounts(), step);
            }
            Step::Directive(_) | Step::Returned { .. } => {}
        }
    }

    /// Begins to decide the meaning of a return to `to`.
    pub(super) fn look(&self, to_thread: bool, to: Address) -> Look {
        let accounts = self.accounts();
        let possible = || accounts.iter().filter(|account| account.can_return(to_thread));
        let is_on_record = possible().any(|account| account.active.last() == Some(&Some(to)));
        // Code that was interrupted elsewhere does not resume here, unless its return address was changed.
        let is_elsewhere = !is_on_record && possible().all(|account| !account.active.is_empty());
        Look {
            went_on: reduced(accounts.iter().filter_map(|account| account.went_on(to_thread, to)).collect()),
            chained: reduced(accounts.iter().filter_map(|account| account.chained(to_thread, to)).collect()),
            is_on_record,
            turns: 0,
            is_over: is_elsewhere,
        }
    }

    /// Takes a return to `to`. `went_on` states whether the interrupted code continued; `None` if unknown.
    pub(super) fn returned(&mut self, to_thread: bool, to: Address, went_on: Option<bool>) {
        let accounts = self.accounts();
        let mut next = Vec::new();
        if went_on != Some(false) {
            next.extend(accounts.iter().filter_map(|account| account.went_on(to_thread, to)));
        }
        if went_on != Some(true) {
            next.extend(accounts.iter().filter_map(|account| account.chained(to_thread, to)));
        }
        self.0 = reduced(next);
        let least = self.0.first().map_or(0, |account| account.odd);
        self.0.iter_mut().for_each(|account| account.odd -= least);
    }

    fn accounts(&self) -> Vec<Account> {
        if self.0.is_empty() { Vec::from([Account::default()]) } else { self.0.clone() }
    }
}

impl Look {
    /// Takes the next step.
    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Directive(Directive::Begin { .. } | Directive::Lost | Directive::Cut) => {
                self.is_over = true;
            }
            Step::Directive(Directive::Exception { .. }) | Step::Returned { .. } | Step::Replaced { .. } => {
                self.turns += 1;
                self.went_on = after(core::mem::take(&mut self.went_on), step);
                self.chained = after(core::mem::take(&mut self.chained), step);
            }
            Step::Directive(_) => {}
        }
    }

    /// Whether there is nothing to wait for.
    pub(super) const fn is_decided(&self) -> bool {
        self.is_over || self.turns >= MOST_TURNS || self.went_on.is_empty() || self.chained.is_empty()
    }

    /// Whether the interrupted code continued; `None` if that stays open.
    pub(super) fn went_on(&self) -> Option<bool> {
        let least = |accounts: &[Account]| accounts.first().map(|account| account.odd);
        match (least(&self.went_on), least(&self.chained)) {
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            (Some(went_on), Some(chained)) if self.is_on_record => Some(went_on <= chained),
            _ => None,
        }
    }
}

impl Account {
    /// Whether a return with this EXC_RETURN is possible.
    fn can_return(&self, to_thread: bool) -> bool {
        match (self.active.len(), self.base) {
            (0, base) => base != Base::Thread,
            (1, Base::Unknown) => true,
            (1, base) => (base == Base::Thread) == to_thread,
            // All but the outermost exception interrupted a handler.
            _ => !to_thread,
        }
    }

    /// The account after a return to the interrupted code.
    fn went_on(&self, to_thread: bool, to: Address) -> Option<Self> {
        let mut account = self.returning(to_thread)?;
        match account.active.pop() {
            // Schedulers change the place where a thread continues, but not that of a handler.
            Some(Some(from)) if from != to => account.odd += if to_thread { 1 } else { 4 },
            Some(_) => {}
            None => account.base = Base::of(to_thread),
        }
        Some(account)
    }

    /// The account after a return into a tail-chained exception.
    fn chained(&self, to_thread: bool, to: Address) -> Option<Self> {
        let mut account = self.returning(to_thread)?;
        match account.active.last() {
            // Two coincidences: the interruption at a handler's first instruction, and the chaining of the
            // same handler.
            Some(&Some(from)) if from == to => account.odd += 2,
            Some(_) => {}
            None => {
                account.base = Base::of(to_thread);
                account.active.push(None);
            }
        }
        Some(account)
    }

    /// The account with the evidence of EXC_RETURN; `None` if that contradicts it.
    fn returning(&self, to_thread: bool) -> Option<Self> {
        let mut account = self.can_return(to_thread).then(|| self.clone())?;
        if account.active.len() == 1 {
            account.base = Base::of(to_thread);
        }
        Some(account)
    }

    fn enter(&mut self, from: Option<Address>) {
        if self.active.len() == DEEPEST {
            self.active.remove(0);
            self.base = Base::Handler;
        }
        self.active.push(from);
    }
}

impl Base {
    const fn of(to_thread: bool) -> Self {
        if to_thread { Self::Thread } else { Self::Handler }
    }
}

/// The accounts that remain possible after an exception or a return.
fn after(mut accounts: Vec<Account>, step: &Step) -> Vec<Account> {
    match *step {
        Step::Directive(Directive::Exception { preferred_return, .. }) => {
            let from = match preferred_return {
                PreferredReturn::At(from) => Some(from),
                _ => None,
            };
            accounts.iter_mut().for_each(|account| account.enter(from));
        }
        Step::Directive(_) => {}
        Step::Returned { to_thread, to } => {
            let went_on = accounts.iter().filter_map(|account| account.went_on(to_thread, to));
            let chained = accounts.iter().filter_map(|account| account.chained(to_thread, to));
            accounts = reduced(went_on.chain(chained).collect());
        }
        Step::Replaced { to_thread, to } => {
            let went_on = accounts.iter().filter_map(|account| account.went_on(to_thread, to));
            accounts = reduced(went_on.collect());
        }
    }
    accounts
}

/// The least odd of the accounts, each once.
fn reduced(mut accounts: Vec<Account>) -> Vec<Account> {
    accounts.sort_by_key(|account| account.odd);
    let mut kept = Vec::<Account>::new();
    for account in accounts {
        let is_known = kept.iter().any(|kept| kept.base == account.base && kept.active == account.active);
        if !is_known && kept.len() < MOST_ACCOUNTS {
            kept.push(account);
        }
    }
    kept
}
