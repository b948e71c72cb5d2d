//! Deviations in the packets that are read, and in how decoding continues after wrong or reserved bytes.

use crate::opencsd::compare::{Difference, ar_name};
use crate::opencsd::deviation::{Deviation, Evidence};
use crate::opencsd::model::{UNSYNCHRONISED, Value, What};
use crate::opencsd::recognise::{
    begins_malformed, differs_in, is_etmv3, is_m_profile, is_malformed, one_each, only_theirs,
    traces_data_addresses,
};

/// The deviations, in the order in which they are tried, after those in the executed path.
pub(super) const PACKETS: &[Deviation] = &[
    Deviation {
        id: "reserved-fields",
        opencsd: "accepts packets with wrong fixed bits or reserved values, and continues after them",
        specification: "IHI 0014Q, 7.3.5 and 7.10.5; IHI 0035B, 4.5: fixed bits and reserved values",
        recognised_by: "at the first difference our packet is malformed for that reason, and OpenCSD has a packet",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "reserved_value"),
    },
    Deviation {
        id: "packets-not-enabled",
        opencsd: "accepts packets that the configuration excludes",
        specification: "IHI 0014Q, 3.5.1 (ETMCR): packets that are not enabled are not sent",
        recognised_by: "at the first difference our packet is malformed for that reason, and OpenCSD has a packet",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "not_enabled"),
    },
    Deviation {
        id: "reserved-headers",
        opencsd: "accepts reserved P-headers and atoms",
        specification: "IHI 0014Q, tables 7.2 and 7.3; IHI 0035B, table 4-3: these headers are reserved",
        recognised_by: "at the first difference ours is a reserved header, and OpenCSD has a packet",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "reserved_header"),
    },
    Deviation {
        id: "long-a-sync",
        opencsd: "takes each zero byte beyond five in an A-sync for a separate packet",
        specification: "IHI 0014Q, 7.10: an A-sync is five or more zero bytes and 0x80",
        recognised_by: "ours is one A-sync; OpenCSD's packets end in one, after malformed bytes",
        evidence: Evidence::Readings,
        recognises: |difference, _| match difference {
            Difference::Cut { ours, theirs, .. } => match (&ours[..], theirs.split_last()) {
                ([ours], Some((last, before))) => {
                    ours.kind == "a_sync"
                        && last.kind == "a_sync"
                        && before.iter().all(|packet| !packet.is_packet())
                }
                _ => false,
            },
            _ => false,
        },
    },
    Deviation {
        id: "cut-packets",
        opencsd: "lists a packet that the end of the trace truncates as if it were complete",
        specification: "IHI 0014Q and IHI 0035B: a packet includes all of its bytes",
        recognised_by: "our last packet is malformed because the trace ends in it",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "truncated"),
    },
    Deviation {
        id: "a-sync-begun-in-a-packet",
        opencsd: "misses an A-sync if it read the first zeros as the end of a packet",
        specification: "IHI 0014Q, 7.10; IHI 0035B, 4.5.1: five or more zero bytes and 0x80; no other packet begins with a zero byte",
        recognised_by: "we have an A-sync directly after bytes that are malformed because they are not a packet",
        evidence: Evidence::Damage,
        recognises: |difference, place| match difference {
            Difference::Cut { ours, .. } => ours.first().is_some_and(|first| {
                let before = place.item_before(first.at);
                first.kind == "a_sync" && before.is_some_and(|item| is_malformed(item, "not_a_sync"))
            }),
            _ => false,
        },
    },
    Deviation {
        id: "search-for-a-sync",
        opencsd: "continues after a malformed packet, although the start of the next packet is unknown",
        specification: "IHI 0014Q, 7.10; IHI 0035B, 4.5.1: only the A-sync shows where packets begin",
        recognised_by: "only OpenCSD has packets here, and we search for an A-sync, or skip bytes before one",
        evidence: Evidence::Damage,
        recognises: |difference, place| match difference {
            Difference::Cut { ours, theirs, .. } => {
                ours.first().is_some_and(|first| first.kind == UNSYNCHRONISED)
                    || theirs
                        .first()
                        .and_then(|first| place.item_before(first.at))
                        .is_some_and(|item| !item.is_packet())
            }
            _ => false,
        },
    },
    Deviation {
        id: "timestamp-length",
        opencsd: "continues ETMv3 timestamps as long as bit 7 is set",
        specification: "IHI 0014Q, 7.7.4: at most 7 bytes, or 9; bit 7 of the ninth is data",
        recognised_by: "ETMv3; an earlier timestamp is longer in OpenCSD's reading, and only timestamps or the packets after it differ",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let (first, _) = difference.places();
            let timestamps = match difference {
                Difference::Packet { ours, .. } => ours.kind == "timestamp",
                Difference::Cut { .. } => {
                    place.item_before(first).is_some_and(|item| item.kind == "timestamp")
                }
                Difference::Flow { .. } => false,
            };
            is_etmv3(place.config) && timestamps && place.has_other_timestamp_before(first + 1)
        },
    },
    Deviation {
        id: "values-without-values",
        opencsd: "rejects out-of-order data and failed stores if only addresses are traced",
        specification: "IHI 0014Q, 7.4: the value is absent if values are not traced; nothing states that the packet is absent, too",
        recognised_by: "at the first difference ours is such a packet, and OpenCSD's is malformed",
        evidence: Evidence::Readings,
        recognises: |difference, place| match difference {
            Difference::Cut { ours, theirs, .. } => {
                let ours =
                    ours.first().is_some_and(|first| ["ooo_data", "store_failed"].contains(&first.kind));
                let theirs = theirs.first().is_some_and(|first| !first.is_packet());
                ours && theirs && traces_data_addresses(place.config)
            }
            _ => false,
        },
    },
    Deviation {
        id: "failed-barriers",
        opencsd: "reports an ISB as not executed if its atom is N",
        specification: "IHI 0035B, 4.5.3: from PFTv1.1 on; PFTv1.0 does not state whether it was executed, and we report it as passed",
        recognised_by: "PFT; both have the same instruction, and OpenCSD reports it as failed",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let both = one_each(difference).map(|(ours, theirs)| (ours.what, theirs.what));
            !is_etmv3(place.config)
                && matches!(
                    both,
                    Some((What::Instruction { at, passed: true }, What::Instruction { at: their, passed: false }))
                        if at == their
                )
        },
    },
    Deviation {
        id: "resume",
        opencsd: "does not print Resume for A and R profile, nor if the packet cancels",
        specification: "IHI 0014Q, table 7.9: exception information byte 2",
        recognised_by: "ETMv3 of A or R profile, or our packet cancels; only Resume differs",
        evidence: Evidence::Readings,
        recognises: |difference, place| match difference {
            Difference::Packet { ours, theirs } => {
                ours.number("resume").is_some()
                    && theirs.number("resume").is_none()
                    && (!is_m_profile(place.config) || ours.number("cancel") == Some(1))
                    && differs_in(ours, theirs).is_empty()
            }
            _ => false,
        },
    },
    Deviation {
        id: "long-exception-codes",
        opencsd: "uses only the lowest four bits of an exception's code, for A and R profile",
        specification: "IHI 0014Q, table 7.9: the code has nine bits; table 7.12: those from 16 on are reserved",
        recognised_by: "our code is greater than 15, its lowest four bits are OpenCSD's, and nothing else differs",
        evidence: Evidence::Readings,
        recognises: |difference, place| match difference {
            Difference::Packet { ours, theirs } => {
                let code = ours.number("exception").unwrap_or(0);
                let same = ar_name(code & 0xf);
                !is_m_profile(place.config)
                    && code > 0xf
                    && theirs.fields.get("exception_name") == Some(&Value::Text(same))
                    && differs_in(ours, theirs).is_empty()
            }
            _ => false,
        },
    },
    Deviation {
        id: "unknown-returns",
        opencsd: "reports where execution continues after a reset and after reserved exceptions",
        specification: "IHI 0035B, 5.3.1: the packets before a reset do not show how far execution came; table 4-5: 6, 7 and \
                        all codes from 16 on are reserved",
        recognised_by: "PFT; both have the same exception, a reset or a reserved one, and ours has no return address",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            let both = one_each(difference).map(|(ours, theirs)| (ours.what, theirs.what));
            !is_etmv3(place.config)
                && matches!(
                    both,
                    Some((
                        What::Exception { number: number @ (6..=8 | 16..), preferred_return: None },
                        What::Exception { number: their_number, preferred_return: Some(_) }
                    )) if number == their_number
                )
        },
    },
    Deviation {
        id: "waypoint-within-instruction",
        opencsd: "runs past the end of a waypoint update that names the second half of an instruction, up to where there is no code",
        specification: "IHI 0035B, 4.5.5 (waypoint update): the address may be that of the instruction less 2 or 4; everything up to it was executed",
        recognised_by: "PFT; there is such an update where the readings diverge, and our flow ends with the instruction that contains it",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            matches!(difference, Difference::Flow { .. })
                && !is_etmv3(place.config)
                && place.updates_within_an_instruction(difference.places())
        },
    },
    Deviation {
        id: "gives-up",
        opencsd: "stops decoding at the first ETMv3 packet that it cannot use",
        specification: "IHI 0014Q, 7.10: decoding resumes at the next A-sync and I-sync",
        recognised_by: "OpenCSD ended with a fatal error; only we have what follows, or what OpenCSD held back",
        evidence: Evidence::Readings,
        recognises: |difference, place| match difference {
            Difference::Flow { ours, theirs, between } => {
                theirs.is_empty() && place.gave_up_before(ours.last().map_or(between.1, |step| step.until))
            }
            _ => false,
        },
    },
    Deviation {
        id: "out-of-step",
        opencsd: "derives flow from bytes after an invalid packet, before the next A-sync and I-sync",
        specification: "IHI 0014Q, 7.10; IHI 0035B, 4.5.1 and 4.5.2: an A-sync shows where packets begin, an I-sync where execution is",
        recognised_by: "only OpenCSD has flow, or it has another address, and our reading has no A-sync and I-sync between the \
                        malformed bytes and that flow; or OpenCSD reports that trace begins with the first I-sync after them",
        evidence: Evidence::Damage,
        recognises: |difference, place| match difference {
            Difference::Packet { ours, .. } => place.is_out_of_step(ours.at),
            _ => only_theirs(difference).is_some_and(|steps| {
                steps.iter().all(|step| {
                    place.is_out_of_step(step.from)
                        || step.what == What::TraceOn && step.from > 0 && place.is_out_of_step(step.from - 1)
                })
            }),
        },
    },
    Deviation {
        id: "contradictions",
        opencsd: "continues although trace and image disagree, or although the place of execution is unknown",
        specification: "DDI 0406C, A8.3: an unconditional instruction is executed; only branches branch",
        recognised_by: "OpenCSD's execution there is impossible: an unconditional instruction fails, or execution goes to a place that no branch, or not this packet's branch, leads to, or that has no code",
        evidence: Evidence::Damage,
        recognises: |difference, place| {
            matches!(difference, Difference::Flow { .. }) && place.is_impossible(difference.places())
        },
    },
];
