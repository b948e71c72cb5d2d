//! The protocols that streams can read, listed nowhere else outside their folders.

use crate::directive::Rules;
use crate::flow::{Engine, Flow};
use crate::ids::TraceId;
use crate::protocol::{Packets, Protocol, etmv3, etmv4, itm, mtb, pft, stm};

use super::chain::{Chain, ChainState};
use super::memo::MemoChain;

/// One protocol's part of an enum that has a variant for each protocol.
pub(super) trait VariantOf<Any> {
    /// The part, if the variant is this protocol's.
    fn of(any: &Any) -> Option<&Self>;
}

/// Defines the enums with a variant for each protocol, and `each!`, which runs the same code for any of them.
macro_rules! protocols {
    ($dollar:tt $($(#[$doc:meta])+ $name:ident($config:ty) by $chain:ident;)+) => {
        /// A source's protocol and its configuration.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum SourceConfig { $($(#[$doc])+ $name($config),)+ }

        /// Bytes to packets.
        #[derive(Clone, Debug)]
        pub(super) enum PacketChain {
            $($name(Packets<<$config as Protocol>::Decoder>),)+
            Itm(Packets<itm::Decoder>),
            Stm(Packets<stm::Decoder>),
        }

        /// Bytes to program flow.
        #[derive(Clone, Debug)]
        pub(super) enum FlowChain { $($name($chain<$config>),)+ }

        /// The state of a [`FlowChain`].
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub(super) enum SourceState { $($name(ChainState<$config>),)+ }

        impl SourceConfig {
            /// The names of all protocols, as [`SourceConfig::protocol`] gives them.
            pub const PROTOCOLS: &'static [&'static str] = &[$(<$config as Protocol>::NAME,)+];
        }

        impl SourceState {
            pub(super) const fn protocol(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$config as Protocol>::NAME,)+
                }
            }
        }

        impl PacketChain {
            pub(super) fn new(config: &SourceConfig) -> Self {
                match config {
                    $(SourceConfig::$name(config) => Self::$name(Packets::new(config.decoder())),)+
                }
            }
        }

        macro_rules! each_packets {
            ($dollar value:expr, $dollar one:ident => $dollar body:expr) => {
                match $dollar value {
                    $(PacketChain::$name($dollar one) => $dollar body,)+
                    PacketChain::Itm($dollar one) => $dollar body,
                    PacketChain::Stm($dollar one) => $dollar body,
                }
            };
        }

        impl FlowChain {
            pub(super) fn new(config: &SourceConfig, engine: Engine) -> Self {
                let flow = Flow::with_engine(config.rules(), engine);
                match config {
                    $(SourceConfig::$name(config) => Self::$name($chain::new(config, flow)),)+
                }
            }
        }

        $(
            impl VariantOf<SourceConfig> for $config {
                fn of(any: &SourceConfig) -> Option<&Self> {
                    match any {
                        SourceConfig::$name(config) => Some(config),
                        _ => None,
                    }
                }
            }

            impl VariantOf<SourceState> for ChainState<$config> {
                fn of(any: &SourceState) -> Option<&Self> {
                    match any {
                        SourceState::$name(state) => Some(state),
                        _ => None,
                    }
                }
            }

            impl From<ChainState<$config>> for SourceState {
                fn from(state: ChainState<$config>) -> Self {
                    Self::$name(state)
                }
            }
        )+

        macro_rules! each {
            ($dollar any:ident, $dollar value:expr, $dollar one:ident => $dollar body:expr) => {
                match $dollar value {
                    $($crate::source::dispatch::$dollar any::$name($dollar one) => $dollar body,)+
                }
            };
        }
    };
}

protocols! { $
    /// ETMv3.
    Etmv3(etmv3::Config) by MemoChain;
    /// ETMv4 or ETE.
    Etmv4(etmv4::Config) by MemoChain;
    /// A micro trace buffer, its packets in order.
    Mtb(mtb::Source) by Chain;
    /// PFT.
    Pft(pft::Config) by MemoChain;
}
pub(super) use {each, each_packets};

/// A protocol without program flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Instrumentation {
    /// An ITM.
    #[default]
    Itm,
    /// An STM.
    Stm,
}

impl Instrumentation {
    /// The protocol's name on the command line and in the line formats.
    #[must_use]
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Itm => "itm",
            Self::Stm => "stm",
        }
    }
}

impl From<Instrumentation> for PacketChain {
    fn from(of: Instrumentation) -> Self {
        match of {
            Instrumentation::Itm => Self::Itm(Packets::new(itm::Decoder::new())),
            Instrumentation::Stm => Self::Stm(Packets::new(stm::Decoder::new())),
        }
    }
}

impl SourceConfig {
    /// The protocol's name on the command line and in the line formats.
    #[must_use]
    pub const fn protocol(&self) -> &'static str {
        const fn name<P: Protocol>(_: &P) -> &'static str {
            P::NAME
        }
        each!(SourceConfig, self, config => name(config))
    }

    /// The source's ID in formatted trace, if its registers hold one.
    #[must_use]
    pub fn trace_id(&self) -> Option<TraceId> {
        each!(SourceConfig, self, config => Protocol::trace_id(config))
    }

    /// The rules by which flow follows the source.
    #[must_use]
    pub fn rules(&self) -> Rules {
        each!(SourceConfig, self, config => Protocol::rules(config))
    }
}
