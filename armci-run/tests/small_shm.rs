//! The 64 MiB of `/dev/shm` that containers have are no limit, and nothing is left there.

mod common;

use std::process::Command;

use armci_core::World;
use common::{Run, play_outside};

/// Mounts what a container has. Not seen outside of the mount namespace that it is done in.
const MOUNT: &str = "mount -t tmpfs -o size=64m tmpfs /dev/shm";
/// More than fits there, on each of two ranks.
const WORDS: usize = (96 << 20) / 8;

#[test]
fn more_than_it_holds() {
    play_outside(|_| fill());
    let probe = Command::new("unshare").args(["--mount", "sh", "-c", MOUNT]).output();
    match probe {
        Ok(output) if output.status.success() => {}
        refused => return println!("SKIPPED: no mount namespace can be had here: {refused:?}"),
    }
    let apart = format!(
        "exec unshare --mount sh -c '{MOUNT} || exit 99; \"$0\" \"$@\"; code=$?; ls -A /dev/shm >&2; exit $code' \"$0\" \"$@\""
    );
    let this = std::env::current_exe().unwrap();
    for protocol in ["rma", "am"] {
        let rank = [this.to_str().unwrap(), "--exact", "more_than_it_holds", "--nocapture"];
        let ended = Run::after(&apart, &[&["-n", "2"][..], &rank].concat())
            .acting("filler")
            .env("ARMCI_PROTOCOL", protocol)
            .end();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "by {protocol}:\n{}", ended.stdout);
        assert_eq!(ended.stdout.matches("filled").count(), 2, "{}", ended.stdout);
    }
}

/// A rank: fills its neighbour's part, adds to it, and looks at every word of it.
fn fill() {
    let shm = rustix::fs::statvfs("/dev/shm").unwrap();
    assert_eq!(shm.f_blocks * shm.f_frsize, 64 << 20);
    let world = World::init().unwrap();
    let region = world.allocate(8 * WORDS).unwrap();
    let right = region.at::<i64>((world.rank() + 1) % world.size(), 0);
    let mut words: Vec<i64> = (0..WORDS as i64).collect();
    world.put(&words, right).unwrap();
    world.accumulate(2, &words, right).unwrap();
    world.get(right, &mut words).unwrap();
    assert!(words.iter().zip(0..).all(|(word, at)| *word == 3 * at));
    world.barrier().unwrap();
    world.free(region).unwrap();
    world.finalize().unwrap();
    println!("filled");
}
