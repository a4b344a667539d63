//! Go's template errors as Helm prints them.

use crate::Compat;

/// Around the text of `fail` and `required`, which is printed alone.
pub(crate) const WARN_START: &str = "HELM_ERR_START";
/// See [`WARN_START`].
pub(crate) const WARN_END: &str = "HELM_ERR_END";

/// The location and the last part of a parse error.
pub(crate) fn parse_error(text: &str) -> String {
    let tokens: Vec<&str> = text.split(": ").collect();
    match tokens.as_slice() {
        [_, location, .., last] => format!("parse error at ({location}): {last}"),
        [_, location] => format!("parse error at ({location}): {location}"),
        _ => text.to_owned(),
    }
}

/// The texts of `fail` and `required` alone; else, in Helm 4, one block for each template on the
/// way, if all of the error is of the template engine.
pub(crate) fn exec_error(file: &str, text: &str, compat: Compat) -> String {
    let mut tokens = text.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (tokens.next(), tokens.next(), tokens.next()) else {
        return format!("execution error in ({file}): {text}");
    };
    if let Some(start) = rest.find(WARN_START)
        && let Some(end) = rest.rfind(WARN_END)
        && start + WARN_START.len() <= end
    {
        return format!("execution error at ({location}): {}", &rest[start + WARN_START.len()..end]);
    }
    if compat == Compat::Helm3 {
        return text.to_owned();
    }
    let mut blocks: Vec<String> = Vec::new();
    for link in chain(text) {
        let Some(block) = block(link) else { return text.to_owned() };
        if blocks.last() != Some(&block) {
            blocks.push(block);
        }
    }
    blocks.concat().trim().to_owned()
}

/// The texts of an error and of those that it wraps. What a function (other than `include`) returned
/// is wrapped as well and is no template error.
fn chain(text: &str) -> Vec<&str> {
    const INCLUDE: &str = "error calling include: ";
    let mut links = vec![text];
    let mut rest = text;
    while let Some((_, message)) = executing(rest.strip_prefix(PREFIX).unwrap_or(rest)) {
        let Some(wrapped) = message.strip_prefix("error calling ") else { break };
        let Some((_, inner)) = wrapped.split_once(": ") else { break };
        links.push(inner);
        if !message.starts_with(INCLUDE) {
            break;
        }
        rest = inner;
    }
    links
}

const PREFIX: &str = "template: ";

struct Executing<'a> {
    location: &'a str,
    function: &'a str,
    context: &'a str,
}

/// Takes `LOCATION: executing "NAME" at <CONTEXT>: MESSAGE` apart.
fn executing(text: &str) -> Option<(Executing<'_>, &str)> {
    let (location, after) = text.split_once(": executing ")?;
    let after = after.strip_prefix('"')?;
    let (function, after) = after.split_once('"')?;
    let (context, message) = after.strip_prefix(" at <")?.split_once(">: ")?;
    Some((Executing { location, function, context }, message))
}

fn block(text: &str) -> Option<String> {
    let rest = text.strip_prefix(PREFIX)?;
    if rest.starts_with("no template ") {
        return Some(format!("{text}\n"));
    }
    let cut = |message: &str| message.split(" template:").next().unwrap_or_default().to_owned();
    if rest.contains(": executing ") {
        let (Executing { location, function, context }, message) = executing(rest)?;
        let message = cut(message);
        let mut block = format!("{location}\n  executing \"{function}\" at <{context}>:\n    ");
        if !message.is_empty() {
            block.push_str(&message);
            block.push('\n');
        }
        return Some(block);
    }
    let (location, message) = rest.rsplit_once(": ")?;
    Some(format!("{location}\n  {}\n", cut(message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_includes_is_one_block_each() {
        let text = "template: c/templates/a.yaml:3:4: executing \"c/templates/a.yaml\" at <include \"x\" .>: error calling include: template: c/templates/_h.tpl:2:9: executing \"x\" at <.Values.a.b>: nil pointer evaluating interface {}.b";
        assert_eq!(
            exec_error("f", text, Compat::Helm4),
            "c/templates/a.yaml:3:4\n  executing \"c/templates/a.yaml\" at <include \"x\" .>:\n    error calling include:\nc/templates/_h.tpl:2:9\n  executing \"x\" at <.Values.a.b>:\n    nil pointer evaluating interface {}.b"
        );
        assert_eq!(exec_error("f", text, Compat::Helm3), text);
    }

    #[test]
    fn what_a_function_returned_leaves_the_text_alone() {
        let text = "template: a:1:2: executing \"a\" at <semver \"x\">: error calling semver: invalid semantic version";
        assert_eq!(exec_error("f", text, Compat::Helm4), text);
    }

    #[test]
    fn fail_and_required_print_their_text() {
        let text = format!(
            "template: a:1:2: executing \"a\" at <fail>: error calling fail: {WARN_START}no\nway{WARN_END}"
        );
        assert_eq!(exec_error("f", &text, Compat::Helm4), "execution error at (a:1:2): no\nway");
    }

    #[test]
    fn parse_errors_keep_location_and_reason() {
        assert_eq!(
            parse_error("template: c/templates/a.yaml:4: unclosed action"),
            "parse error at (c/templates/a.yaml:4): unclosed action"
        );
    }
}
