//! The forms of SWO and trace ports, and the roles of a recording's channels.

use std::fmt;

/// The form in which bytes are sent over the wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// SWO with a start and a stop bit for each byte.
    Uart,
    /// SWO with a change in the middle of each bit.
    Manchester,
    /// A trace port: a clock and parallel data.
    Port,
}

impl Wire {
    /// Every form, in the order of the options' help.
    pub const ALL: [Self; 3] = [Self::Uart, Self::Manchester, Self::Port];

    /// The form's name in options and descriptions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uart => "uart",
            Self::Manchester => "manchester",
            Self::Port => "port",
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The role of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The one pin of SWO.
    Swo,
    /// TRACECLK.
    Clock,
    /// A pin of TRACEDATA, by its number.
    Data(u8),
}

/// The most pins of TRACEDATA.
pub(super) const MOST_PINS: u8 = 16;

impl Role {
    /// The role of a channel with one of the usual names.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let letters =
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
        let plain = letters.strip_prefix("TPIU").unwrap_or(&letters);
        let plain = plain.strip_prefix("TRACE").unwrap_or(plain);
        let data = || plain.strip_prefix("DATA").or_else(|| plain.strip_prefix('D'));
        match plain {
            "SWO" | "SWV" | "TDOSWO" | "TDOTRACESWO" | "JTDOTRACESWO" | "JTDOSWO" | "SWOTDO" => {
                Some(Self::Swo)
            }
            "CLK" | "CLOCK" | "TCLK" | "TRCLK" | "CK" => Some(Self::Clock),
            _ => data()?.parse().ok().filter(|pin| *pin < MOST_PINS).map(Self::Data),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swo => f.write_str("swo"),
            Self::Clock => f.write_str("clk"),
            Self::Data(pin) => write!(f, "d{pin}"),
        }
    }
}
