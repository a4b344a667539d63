//! What an executable says of itself: for which machine it is, and whether it needs a loader (System V ABI,
//! "Object Files").

use anyhow::{Context, bail, ensure};

/// A machine that there are images for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// As Rust's targets call it.
    pub rust: &'static str,
    /// As container images call it.
    pub oci: &'static str,
    elf: u16,
}

const MACHINES: [Machine; 2] =
    [Machine { rust: "x86_64", oci: "amd64", elf: 62 }, Machine { rust: "aarch64", oci: "arm64", elf: 183 }];

/// The machine of a static ELF executable.
///
/// # Errors
/// It is none, needs a loader, or is for a machine that there are no images for.
pub(crate) fn static_machine(content: &[u8]) -> anyhow::Result<Machine> {
    ensure!(is_elf(content), "it is no executable of Linux");
    let machine = number::<2>(content, 18)?;
    let known = MACHINES.iter().find(|known| u64::from(known.elf) == machine);
    let machine =
        *known.with_context(|| format!("it is for the machine {machine} of ELF; known: 62, 183"))?;
    ensure!(
        !has_loader(content)?,
        "it is linked dynamically; build with target-feature=+crt-static or for musl"
    );
    Ok(machine)
}

/// Whether this is an executable of Linux, of 64 bits and with the lowest byte first.
pub(crate) fn is_elf(content: &[u8]) -> bool {
    content.starts_with(b"\x7fELF\x02\x01")
}

/// Whether there is a program header of type PT_INTERP.
fn has_loader(content: &[u8]) -> anyhow::Result<bool> {
    const PT_INTERP: u64 = 3;
    let table = number::<8>(content, 32)?;
    let (size, count) = (number::<2>(content, 54)?, number::<2>(content, 56)?);
    for index in 0..count {
        let at = index.checked_mul(size).and_then(|offset| table.checked_add(offset));
        if number::<4>(content, at.context("it is damaged")?)? == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A number of some bytes, the lowest first.
fn number<const N: usize>(content: &[u8], at: u64) -> anyhow::Result<u64> {
    let at = usize::try_from(at)?;
    let Some(bytes) = at.checked_add(N).and_then(|end| content.get(at..end)) else { bail!("it breaks off") };
    Ok(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// An executable of Linux with nothing in it, for tests.
#[cfg(test)]
pub(crate) fn empty_elf(machine: u16, segment: u32) -> Vec<u8> {
    let mut content = b"\x7fELF\x02\x01\x01".to_vec();
    content.resize(64, 0);
    content[18..20].copy_from_slice(&machine.to_le_bytes());
    content[32..40].copy_from_slice(&64_u64.to_le_bytes());
    content[54..56].copy_from_slice(&56_u16.to_le_bytes());
    content[56..58].copy_from_slice(&1_u16.to_le_bytes());
    content.extend(segment.to_le_bytes());
    content.resize(120, 0);
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_executable_says_its_machine() {
        assert_eq!(static_machine(&empty_elf(62, 1)).unwrap().oci, "amd64");
        assert_eq!(static_machine(&empty_elf(183, 1)).unwrap().rust, "aarch64");
    }

    #[test]
    fn what_is_none_is_refused_with_the_reason() {
        let reason = |content: &[u8]| static_machine(content).unwrap_err().to_string();
        assert!(reason(&empty_elf(62, 3)).contains("dynamically"));
        assert!(reason(&empty_elf(40, 1)).contains("machine 40"));
        assert!(reason(b"MZ").contains("no executable of Linux"));
        assert!(reason(&empty_elf(62, 1)[..60]).contains("breaks off"));
    }
}
