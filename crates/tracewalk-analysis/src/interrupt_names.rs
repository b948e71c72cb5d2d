//! Names of a chip's interrupts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use tracewalk::ids::Exception;

/// Names of M profile's external interrupts, as the chip's maker calls them. The architecture only numbers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts(BTreeMap<u16, String>);

/// From numbers, 0 for IRQ0, and names.
impl FromIterator<(u16, String)> for Interrupts {
    fn from_iter<I: IntoIterator<Item = (u16, String)>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl Interrupts {
    /// The maker's name for an exception; `None` if the architecture names the exception, or if the name was not given.
    #[must_use]
    pub fn name(&self, exception: Exception) -> Option<&str> {
        self.0.get(&exception.external_interrupt()?).map(String::as_str)
    }

    /// The best name there is: the maker's, else the architecture's.
    #[must_use]
    pub fn name_or_number(&self, exception: Exception) -> Cow<'_, str> {
        self.name(exception).map_or_else(|| exception.to_string().into(), Cow::Borrowed)
    }

    /// Both names, for people: `TIM2 (IRQ28)`.
    pub fn describe(&self, exception: Exception) -> impl fmt::Display {
        fmt::from_fn(move |f| match self.name(exception) {
            Some(name) => write!(f, "{name} ({exception})"),
            None => fmt::Display::fmt(&exception, f),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_makers_name_goes_with_the_number() {
        let interrupts = Interrupts::from_iter([(28, "TIM2".to_owned()), (15, "no SysTick".to_owned())]);
        let both = |exception| {
            (interrupts.name_or_number(exception).into_owned(), interrupts.describe(exception).to_string())
        };
        let names = |name: &str, described: &str| (name.to_owned(), described.to_owned());
        assert_eq!(both(Exception::M(16 + 28)), names("TIM2", "TIM2 (IRQ28)"));
        assert_eq!(both(Exception::M(16 + 29)), names("IRQ29", "IRQ29"));
        assert_eq!(both(Exception::M(15)), names("SysTick", "SysTick"));
        // A and R profile have one interrupt exception, whose number identifies no source.
        assert_eq!(both(Exception::Ar(14)), names("IRQ", "IRQ"));
    }
}
