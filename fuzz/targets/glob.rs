//! Any pattern is read or refused, and matching any text with it ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_gocompat::glob::{Glob, doublestar, path_match, pathspec};

fuzz_target!(|input: (&str, &str)| {
    let (pattern, text) = input;
    let _ = (path_match(pattern, text), doublestar(pattern, text), pathspec(pattern, text));
    if let Ok(glob) = Glob::compile(pattern) {
        let within = glob.is_match(text, Some('/'));
        assert!(!within || glob.is_match(text, None), "a separator lets nothing more match");
    }
});
