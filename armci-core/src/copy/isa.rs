//! Which vector instructions this processor has, asked once.
//!
//! Guarantees that [`isa`] costs one relaxed load and a predictable branch after its first call, that every caller
//! in the process sees the same answer, and that a [`Level`] is named only if processor and operating system both
//! support all of it. It does not promise that two ranks get the same answer: the kernels are written so that
//! results do not depend on it.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The widest vectors to use, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has (SSE2 on x86-64).
    Portable,
    /// 32-byte vectors.
    Avx2,
    /// 64-byte vectors: AVX-512 F, BW, DQ and VL together.
    Avx512,
}

/// What the kernels want to know about the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa {
    /// The widest vectors to use.
    pub level: Level,
    /// Whether `rep movs` is quick (ERMS and FSRM, as on Zen 3 and later and Ice Lake and later). It moves lines
    /// without reading the target first, which no vector loop can do while keeping the target cached.
    pub fast_strings: bool,
}

const KNOWN: u8 = 0x80;
const STRINGS: u8 = 0x40;

/// Zero until somebody has asked; then `KNOWN`, the level and perhaps `STRINGS`. Racing first callers store the same.
static CACHED: AtomicU8 = AtomicU8::new(0);

impl Isa {
    const fn pack(self) -> u8 {
        KNOWN | self.level as u8 | if self.fast_strings { STRINGS } else { 0 }
    }

    #[inline(always)]
    const fn unpack(bits: u8) -> Self {
        let level = match bits & 3 {
            0 => Level::Portable,
            1 => Level::Avx2,
            _ => Level::Avx512,
        };
        Isa { level, fast_strings: bits & STRINGS != 0 }
    }
}

/// This processor's abilities.
#[inline(always)]
pub fn isa() -> Isa {
    match CACHED.load(Relaxed) {
        0 => detect_and_cache(),
        bits => Isa::unpack(bits),
    }
}

#[cold]
#[inline(never)]
fn detect_and_cache() -> Isa {
    let found = detect();
    CACHED.store(found.pack(), Relaxed);
    found
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    use std::arch::is_x86_feature_detected as has;
    let level = if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
        Level::Avx512
    } else if has!("avx2") {
        Level::Avx2
    } else {
        Level::Portable
    };
    Isa { level, fast_strings: fast_strings() }
}

/// CPUID leaf 7: ERMS is bit 9 of EBX, FSRM bit 4 of EDX; the standard macro names neither.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, unused_unsafe)] // the intrinsics became safe after our minimum Rust version
fn fast_strings() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // SAFETY: every x86-64 processor has CPUID, and leaf 7 is asked only if leaf 0 says that it exists.
    let leaf = unsafe {
        if __cpuid(0).eax < 7 {
            return false;
        } else {
            __cpuid_count(7, 0)
        }
    };
    leaf.ebx & (1 << 9) != 0 && leaf.edx & (1 << 4) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa { level: Level::Portable, fast_strings: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_its_packing() {
        for level in [Level::Portable, Level::Avx2, Level::Avx512] {
            for fast_strings in [false, true] {
                let isa = Isa { level, fast_strings };
                assert_eq!(Isa::unpack(isa.pack()), isa);
            }
        }
        assert_eq!(isa(), isa());
    }
}
