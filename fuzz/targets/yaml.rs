//! YAML is read or refused, both readers agree on its fields, and what was read can be written and read
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_yaml::{
    EmitOptions, Profile, emit_documents, from_yaml, from_yaml_entries, from_yaml_for_fields,
    parse_documents, to_yaml,
};

fuzz_target!(|text: &str| {
    for profile in [Profile::Go2, Profile::Go3] {
        if let Ok(documents) = parse_documents(text, profile) {
            emit_documents(&documents, EmitOptions::KYAML);
        }
    }
    let Ok(value) = from_yaml(text) else {
        assert!(from_yaml_entries(text, |_| true).is_err());
        return;
    };
    // Of fields floats stay floats.
    assert_eq!(from_yaml_entries(text, |_| true), from_yaml_for_fields(text));
    from_yaml(&to_yaml(&value)).ok();
});
