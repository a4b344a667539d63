//! Errors of the library in words and with a place.

use rsjsonnet_lang::{
    program::{LoadError, Program},
    span::{SpanContextId, SpanId},
};

/// The place of an error that has no other: the library's errors name their spans in fields of their own, and
/// the first of them is the place.
pub(super) fn first_span(
    texts: &[(SpanContextId, String, String)],
    program: &Program<'_>,
    error: &LoadError,
) -> Option<SpanId> {
    use rsjsonnet_lang::{lexer::LexError, parser::ParseError, program::AnalyzeError};
    let span = match error {
        LoadError::Parse(ParseError::Expected { span, .. }) => *span,
        LoadError::Lex(
            LexError::InvalidChar { span, .. }
            | LexError::InvalidUtf8 { span, .. }
            | LexError::UnfinishedMultilineComment { span }
            | LexError::LeadingZeroInNumber { span },
        ) => *span,
        LoadError::Analyze(AnalyzeError::UnknownVariable { span, .. }) => *span,
        _ => return None,
    };
    let (context, ..) = program.span_manager().get_span(span);
    texts.iter().any(|(known, ..)| *known == context).then_some(span)
}

/// The innermost name of an error of the library, in words: `Analyze(UnknownVariable { .. name: "x" })` is
/// `unknown variable "x"`.
pub(super) fn in_words(debug: &str) -> String {
    let inner =
        ["Lex(", "Parse(", "Analyze("].iter().find_map(|outer| debug.strip_prefix(outer)).unwrap_or(debug);
    let name: String = inner.chars().take_while(char::is_ascii_alphanumeric).collect();
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    let quoted = inner.split_once("name: ").and_then(|(_, rest)| rest.split([',', ' ', '}']).next());
    match quoted {
        Some(quoted) => format!("{words} {quoted}"),
        None if words == "expected" => "it does not parse".into(),
        None => words,
    }
}
