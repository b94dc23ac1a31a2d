//! Any bytes as a packet from another node.

#![no_main]

libfuzzer_sys::fuzz_target!(|packet: &[u8]| {
    let _ = armci_core::fuzzing::decode(packet);
});
