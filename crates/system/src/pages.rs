//! Memory from the system in few large pieces.
//!
//! A process that renders one large chart touches 8 MiB of memory once and ends. To get them from the system page by page
//! took a quarter of its time: 2,000 interruptions of a microsecond or two each. Everything here is advice: what a program
//! computes does not change by it.

/// Makes glibc's allocator get so many bytes for the calling thread from the system at once, and the system give them in
/// large pages when they are touched: for a process that is going to touch them and end. Nothing is touched here, so
/// nothing is used yet; other allocators take no notice.
///
/// What is freed at the end of a heap stays there for what comes next, once a greater piece has been freed; that is how
/// the room gets there, and why pieces that are given back later are not asked for again each time.
pub fn reserve(bytes: usize) {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(2 * bytes)));
    let mut room = Vec::<u8>::with_capacity(bytes);
    let skipped = advise(room.spare_capacity_mut());
    drop(std::hint::black_box(room));
    // What comes next comes from there, and not from the small pages before the first large one.
    std::mem::forget(std::hint::black_box(Vec::<u8>::with_capacity(skipped)));
}

/// Asks for large pages where a piece of memory is going to be touched; how much of it stands before the first of them.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no safe function advises on memory of the allocator's")]
fn advise(room: &mut [std::mem::MaybeUninit<u8>]) -> usize {
    let skipped = room.as_ptr().align_offset(LARGE_PAGE);
    let Some(room) = room.get_mut(skipped..) else { return 0 };
    let length = room.len() - room.len() % LARGE_PAGE;
    // SAFETY: the range lies in memory that is borrowed alone, and this advice changes neither what stands there nor who
    // may use it. See madvise(2), MADV_HUGEPAGE.
    let advised =
        unsafe { rustix::mm::madvise(room.as_mut_ptr().cast(), length, rustix::mm::Advice::LinuxHugepage) };
    // A kernel without large pages gives small ones, anywhere.
    advised.map_or(0, |()| skipped)
}

#[cfg(not(target_os = "linux"))]
fn advise(_room: &mut [std::mem::MaybeUninit<u8>]) -> usize {
    0
}

/// Bytes of a large page on the usual processors; where they are larger, advice on less than one has no effect.
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_as_usable_as_before() {
        for bytes in [0, 1, 8 << 20] {
            reserve(bytes);
            let filled: Vec<Vec<u8>> = (0..100).map(|at| vec![at; 10_000]).collect();
            assert!(filled.iter().zip(0..).all(|(piece, at)| piece.iter().all(|byte| *byte == at)));
        }
    }
}
