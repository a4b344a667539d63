//! Numbers that are drawn from a rehearsal's input, and are the same on every machine.

/// FNV-1a of some bytes.
pub(super) fn stable_hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
