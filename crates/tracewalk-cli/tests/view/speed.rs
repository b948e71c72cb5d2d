//! A large capture is as fast as a small one.

use super::{Served, repeated};

/// The server's processor time, in ticks of the system's clock.
fn worked(served: &Served) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", served.child.id())).unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace().collect::<Vec<_>>();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// The processor time for jumps to random places.
fn jumps(served: &Served, number: &mut u64) -> u64 {
    let steps = served.ask("capture")["sources"][0]["steps"].as_u64().unwrap();
    let before = worked(served);
    for _ in 0..40 {
        *number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let step = (*number >> 16) % steps;
        assert_eq!(served.ask(&format!("here?step={step}"))["row"]["step"], step);
    }
    worked(served) - before
}

/// In a capture 100 times longer, a jump takes less than 1.5 times as long.
#[test]
#[cfg(target_os = "linux")]
fn a_jump_does_not_get_slower_with_the_capture() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let captures = [1 << 20, 100 << 20].into_iter().zip(&folders);
    let captures = captures.map(|(bytes, folder)| repeated("a7-etmv3", bytes, folder.path()));
    let servers = captures.map(|capture| Served::start([capture])).collect::<Vec<_>>();
    // Counting also takes time.
    servers.iter().for_each(Served::counted);
    // Both servers jump in turn, and the shortest time of each counts: other programs make times longer, never shorter.
    let mut number = 1;
    let mut shortest = [u64::MAX; 2];
    for _ in 0..10 {
        for (shortest, served) in shortest.iter_mut().zip(&servers) {
            *shortest = jumps(served, &mut number).min(*shortest);
        }
    }
    assert!(shortest[1] * 2 < shortest[0] * 3 + 4, "40 jumps took {shortest:?} ticks");
}
