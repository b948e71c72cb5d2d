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
        opencsd: "reads packets whose fixed bits are wrong or whose values are reserved, and goes on after them",
        specification: "IHI 0014Q, 7.4 and 7.5; IHI 0035B, 4.3: bits that are always set or clear, values that are reserved",
        recognised_by: "where the packets begin to differ, ours is malformed for that reason, and OpenCSD has one",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "reserved_value"),
    },
    Deviation {
        id: "packets-not-enabled",
        opencsd: "reads packets that the configuration excludes",
        specification: "IHI 0014Q, 3.5.1 (ETMCR): what is not enabled is not sent",
        recognised_by: "where the packets begin to differ, ours is malformed for that reason, and OpenCSD has one",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "not_enabled"),
    },
    Deviation {
        id: "reserved-headers",
        opencsd: "reads P-headers and atoms that are reserved",
        specification: "IHI 0014Q, tables 7.2 and 7.3; IHI 0035B, table 4-3: these headers are reserved",
        recognised_by: "where the packets begin to differ, ours is a reserved header, and OpenCSD has a packet",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "reserved_header"),
    },
    Deviation {
        id: "long-a-sync",
        opencsd: "takes every zero byte more than five in front of an A-sync's end for a packet of its own",
        specification: "IHI 0014Q, 7.6: an A-sync is five zero bytes or more, and 0x80",
        recognised_by: "ours is one A-sync, and OpenCSD's end in one, with malformed bytes in front",
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
        opencsd: "lists the packet in which the trace ends as if it were whole",
        specification: "IHI 0014Q and IHI 0035B: each packet has its bytes",
        recognised_by: "the last of our packets is malformed because the trace ends",
        evidence: Evidence::Damage,
        recognises: |difference, _| begins_malformed(difference, "truncated"),
    },
    Deviation {
        id: "a-sync-begun-in-a-packet",
        opencsd: "does not know an A-sync whose first zeros it read as the end of a packet",
        specification: "IHI 0014Q, 7.6; IHI 0035B, 4.3.1: five zero bytes or more, and 0x80; no other packet begins with zero",
        recognised_by: "we have an A-sync directly after bytes that are malformed because they are none",
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
        opencsd: "reads on where a packet was not what it should be, though nobody knows where the next one begins",
        specification: "IHI 0014Q, 7.6; IHI 0035B, 4.3.1: the A-sync is what tells where packets begin",
        recognised_by: "only OpenCSD has packets here, and we search for an A-sync, or pass bytes over in front of one",
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
        opencsd: "reads timestamps of ETMv3 on for as long as bit 7 is set",
        specification: "IHI 0014Q, 7.9: at most 7 bytes, or 9; bit 7 of the ninth is data",
        recognised_by: "ETMv3; a timestamp in front is longer in OpenCSD's reading, and what differs are packets after it or timestamps",
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
        opencsd: "refuses out-of-order data and failed stores where only addresses are traced",
        specification: "IHI 0014Q, 7.8: the value is absent where values are not traced; no word that the packet is, too",
        recognised_by: "where the packets begin to differ, ours is such a packet, and OpenCSD's is malformed",
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
        opencsd: "says that an ISB was not executed where its atom is N",
        specification: "IHI 0035B, 4.3.3: from PFTv1.1 on; PFTv1.0 does not say whether it was, and we say that it was passed",
        recognised_by: "PFT; both have the same instruction, OpenCSD as failed",
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
        opencsd: "does not print Resume of A and R profile, nor where the packet cancels",
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
        opencsd: "takes the lowest four bits of an exception's code for all of it, for A and R profile",
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
        opencsd: "says where execution goes on after a reset and after exceptions that are reserved",
        specification: "IHI 0035B, 5.2: the packets in front of a reset do not say how far execution came; table 4-5: 6, 7 and \
                        everything from 16 on are reserved",
        recognised_by: "PFT; the same exception each, a reset or a reserved one, without a return address in ours",
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
        opencsd: "passes over the end of a waypoint update that names the second half of an instruction, and goes on to where no code is",
        specification: "IHI 0035B, 4.3.5 (waypoint update): the address may be that of the instruction less 2 or 4; everything up to it was executed",
        recognised_by: "PFT; there is such an update where the readings part, and our flow ends with the instruction that it is in",
        evidence: Evidence::Readings,
        recognises: |difference, place| {
            matches!(difference, Difference::Flow { .. })
                && !is_etmv3(place.config)
                && place.updates_within_an_instruction(difference.places())
        },
    },
    Deviation {
        id: "gives-up",
        opencsd: "stops decoding at the first packet of ETMv3 that it cannot use",
        specification: "IHI 0014Q, 7.6: the next A-sync and I-sync are there to go on",
        recognised_by: "OpenCSD ended with a fatal error; only we have what comes after, or what it held back",
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
        opencsd: "makes flow of what it reads after bytes that are no packet, before the next A-sync and I-sync",
        specification: "IHI 0014Q, 7.6; IHI 0035B, 4.3.1: after an A-sync it is known where packets begin, after an I-sync where execution is",
        recognised_by: "only OpenCSD has flow, or another address, and our reading has no A-sync and I-sync between the malformed \
                        bytes and it; or OpenCSD says that trace begins with the I-sync that is the first one after them",
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
        opencsd: "goes on where trace and image disagree, or where it does not know where execution is",
        specification: "DDI 0406C, A8.3: an instruction without a condition is executed; only branches branch",
        recognised_by: "OpenCSD executes there what cannot be: it fails without a condition, goes where no branch or another one than its packet leads, or where no code is",
        evidence: Evidence::Damage,
        recognises: |difference, place| {
            matches!(difference, Difference::Flow { .. }) && place.is_impossible(difference.places())
        },
    },
];
