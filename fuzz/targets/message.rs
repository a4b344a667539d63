//! What other programs say, in logs, events and conditions, is read; nothing panics, and it ends.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use tiphys_cause as cause;

fuzz_target!(|text: &str| {
    black_box(cause::complaints(text));
    black_box(cause::refused_values(text));
    black_box(cause::failed_calls(text));
    black_box(cause::addresses(text));
    black_box(cause::forbidden(text));
    black_box(cause::placement(text));
    black_box(cause::refusal(text));
    black_box(cause::pull_fault(text));
    black_box(cause::image_parts(text));
    black_box(cause::eviction_refusal(text));
});
