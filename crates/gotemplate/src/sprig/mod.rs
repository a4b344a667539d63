//! The functions of Sprig 3, by family.

mod arguments;
mod cast;
mod crypto;
mod dates;
mod defaults;
mod dicts;
mod encoding;
mod equal;
mod lists;
mod math;
mod merge;
mod paths;
mod reflect;
mod regexes;
mod strings;
mod times;
mod urls;
mod versions;

use arguments::{add, add_variadic, fail, int, text, to_text};

use crate::Functions;

/// Adds the functions to the table.
pub(crate) fn register(functions: &mut Functions) {
    strings::register(functions);
    lists::register(functions);
    dicts::register(functions);
    math::register(functions);
    defaults::register(functions);
    encoding::register(functions);
    reflect::register(functions);
    paths::register(functions);
    crypto::register(functions);
    urls::register(functions);
    dates::register(functions);
    regexes::register(functions);
    versions::register(functions);
    functions.walking(&WALKING);
    functions.copying(&COPYING);
}

/// Functions that copy whatever their arguments hold.
const COPYING: [&str; 2] = ["deepCopy", "mustDeepCopy"];

/// Functions that print or compare whatever their arguments hold.
const WALKING: [&str; 26] = [
    "cat",
    "compact",
    "deepEqual",
    "has",
    "join",
    "merge",
    "mergeOverwrite",
    "mustCompact",
    "mustHas",
    "mustMerge",
    "mustMergeOverwrite",
    "mustToJson",
    "mustToPrettyJson",
    "mustToRawJson",
    "mustUniq",
    "mustWithout",
    "quote",
    "sortAlpha",
    "squote",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "toString",
    "toStrings",
    "uniq",
    "without",
];
