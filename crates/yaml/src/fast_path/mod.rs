//! The everyday part of YAML read straight into values: block mappings and sequences, scalars, literal and
//! folded text, flow collections of one line. Nearly every manifest and values file consists of nothing else.
//!
//! Whatever else a text contains (anchors, tags, directives, tabs, anything that looks wrong) makes the
//! answer `None`, and the whole of YAML has its turn. So nothing here reports a fault, and what is read here
//! is what is read there: a property test holds the two together. What is made of the text is for a [`Make`]
//! to say.

mod flow;
mod scalars;
mod values;

use std::borrow::Cow;

use memchr::memchr;
use serde_json::Value;
use tiphys_value::Budget;

pub use values::Make;

use crate::{
    MAX_SIZE, Style,
    chars::{byte, find_forbidden},
    decode::Floats,
    resolve::{Scalar, resolve},
};
use values::Values;

/// How deep collections may nest; deeper ones are left to the parser, which does not recurse.
const MAX_DEPTH: usize = 64;
/// Keys of this many bytes are left to the parser, which counts characters.
const MAX_KEY: usize = 1000;
/// The room that a map takes for its first entries, in bytes, about.
const FIRST_ENTRY: u64 = 640;

/// Which entries of the outermost mapping are wanted, by their key, and which of the block mappings in these,
/// by both keys.
pub(crate) type Wanted<'w> = &'w dyn Fn(&[&str]) -> bool;

/// What is wanted of a mapping.
#[derive(Clone, Copy)]
struct Filter<'w> {
    wanted: Wanted<'w>,
    /// The key that the mapping stands below, if it is not the outermost.
    above: Option<&'w str>,
}

impl<'w> Filter<'w> {
    fn wants_key(self, key: &str) -> bool {
        match self.above {
            None => (self.wanted)(&[key]),
            Some(above) => (self.wanted)(&[above, key]),
        }
    }

    /// What is wanted of a mapping below a key: everything, from the third level on.
    fn child(self, key: &'w str) -> Option<Filter<'w>> {
        self.above.is_none().then_some(Filter { wanted: self.wanted, above: Some(key) })
    }
}

/// The first document of a text that has only one, with `wanted` entries of its mapping alone (all are read,
/// though). `None` if the text is not simple; in `strict` mode also if a key occurs twice.
pub(crate) fn read(
    text: &str,
    strict: bool,
    floats: Floats,
    wanted: Option<Wanted<'_>>,
    budget: &Budget,
) -> Option<Value> {
    read_with(text, &mut Values { strict, floats }, wanted, budget).map(|value| value.unwrap_or(Value::Null))
}

/// The only document of a text, made by `make` without the whole of YAML: `Some(None)` if it is empty, `None`
/// if it has anything that is not simple. Then [`crate::parse_first`] has to read it.
pub fn read_simple<M: Make>(text: &str, make: &mut M) -> Option<Option<M::Node>> {
    read_with(text, make, None, &Budget::of_document())
}

fn read_with<M: Make>(
    text: &str,
    make: &mut M,
    wanted: Option<Wanted<'_>>,
    budget: &Budget,
) -> Option<Option<M::Node>> {
    if text.len() > MAX_SIZE || !is_readable(text) {
        return None;
    }
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        indent: END,
        depth: 0,
        left: budget.remaining_bytes(),
        make,
    };
    reader.first_line()?;
    let (indent, at) = (reader.indent, reader.at);
    let node = match indent {
        // Behind a `---` nothing is a null.
        END => return (!text.contains("---")).then_some(None),
        _ if reader.is_entry(at) => reader.sequence(indent, at, true)?,
        _ => {
            let first = reader.key(at)??;
            reader.mapping(indent, first, true, wanted.map(|wanted| Filter { wanted, above: None }))?
        }
    };
    budget.take(budget.remaining_bytes().saturating_sub(reader.left)).ok()?;
    (reader.indent == END).then_some(Some(node))
}

/// Whether only characters occur that mean nothing special: no carriage return, no control character, no line
/// break of another script, no byte order mark.
fn is_readable(text: &str) -> bool {
    let mut plain = true;
    let mut ascii = true;
    for &b in text.as_bytes() {
        plain &= b >= b' ' && b != 0x7F || b == b'\n' || b == b'\t';
        ascii &= b < 0x80;
    }
    plain
        && (ascii
            || find_forbidden(text).is_none()
                && !text.contains(['\u{85}', '\u{2028}', '\u{2029}', '\u{FEFF}']))
}

/// Bytes that may end a plain scalar.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    table[b'\n' as usize] = true;
    table[b'\t' as usize] = true;
    table[b':' as usize] = true;
    table[b'#' as usize] = true;
    table
};

/// The indentation of the line behind the last one.
const END: i32 = -1;

struct Reader<'a, 'm, M> {
    text: &'a str,
    bytes: &'a [u8],
    /// Where the content of the next line begins, blank lines and comments skipped.
    at: usize,
    /// The indentation of that line.
    indent: i32,
    depth: usize,
    /// Bytes that may still be made. Past them the whole of YAML reads the text, which reports it.
    left: u64,
    make: &'m mut M,
}

/// A key, and the offset behind its `:`.
struct Key<'a> {
    name: Cow<'a, str>,
    style: Style,
    end: usize,
}

impl<'a, M: Make> Reader<'a, '_, M> {
    /// Finds the first line with content, behind a `---` if there is one.
    fn first_line(&mut self) -> Option<()> {
        let (line, at) = self.skip_lines(0);
        if line == at && self.bytes[at..].starts_with(b"---") {
            let end = self.skip_spaces(at + 3);
            return if matches!(byte(self.bytes, end), b'\n' | 0) { self.end_line(end) } else { None };
        }
        self.start_line(0)
    }

    /// Skips blank lines and comments from the start of a line on: where the line with content starts, and
    /// its content.
    fn skip_lines(&self, mut line: usize) -> (usize, usize) {
        loop {
            let at = self.skip_spaces(line);
            match byte(self.bytes, at) {
                b'\n' => line = at + 1,
                b'#' => line = (self.line_end(at) + 1).min(self.bytes.len()),
                _ => return (line, at),
            }
        }
    }

    /// Finds the next line with content, from the start of a line on.
    fn start_line(&mut self, line: usize) -> Option<()> {
        let (line, at) = self.skip_lines(line);
        self.at = at;
        match byte(self.bytes, at) {
            0 => {
                self.indent = END;
                return Some(());
            }
            b'\t' => return None,
            b'-' | b'.' | b'%' if at == line => {
                let rest = &self.bytes[at..];
                if rest.starts_with(b"---") || rest.starts_with(b"...") || rest.starts_with(b"%") {
                    return None;
                }
            }
            _ => {}
        }
        self.indent = i32::try_from(at - line).ok()?;
        Some(())
    }

    /// Finds the next line with content, from where a line has nothing more to say than a comment.
    fn end_line(&mut self, at: usize) -> Option<()> {
        self.start_line((self.line_end(at) + 1).min(self.bytes.len()))
    }

    fn skip_spaces(&self, mut at: usize) -> usize {
        while byte(self.bytes, at) == b' ' {
            at += 1;
        }
        at
    }

    fn line_end(&self, at: usize) -> usize {
        memchr(b'\n', &self.bytes[at..]).map_or(self.bytes.len(), |length| at + length)
    }

    /// Whether a blank or the end of the line stands there.
    fn is_gap(&self, at: usize) -> bool {
        matches!(byte(self.bytes, at), b' ' | b'\n' | 0)
    }

    /// Whether the line has nothing more to say; `at` follows a space or an indicator and its spaces.
    fn is_line_end(&self, at: usize) -> bool {
        match byte(self.bytes, at) {
            b'\n' | 0 => true,
            b'#' => self.bytes[at - 1] == b' ',
            _ => false,
        }
    }

    /// Whether an entry of a block sequence starts there.
    fn is_entry(&self, at: usize) -> bool {
        byte(self.bytes, at) == b'-' && self.is_gap(at + 1)
    }

    /// The value that starts on the next line, in a block collection of that column.
    fn block(&mut self, column: i32, keep: bool, filter: Option<Filter<'_>>) -> Option<M::Node> {
        let (indent, at) = (self.indent, self.at);
        if self.is_entry(at) {
            return self.sequence(indent, at, keep);
        }
        match self.key(at)? {
            Some(first) => self.mapping(indent, first, keep, filter),
            None => self.scalar(at, column, keep),
        }
    }

    /// Counts an item of a list, which has room for more, be it wanted or not: whoever reads the whole text
    /// later must not fail where this did not.
    fn count_item(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(3 * size_of::<M::Node>() as u64 / 2)?;
        Some(())
    }

    /// Counts an entry of a map; the first one makes room for others.
    fn count_entry(&mut self, is_first: bool) -> Option<()> {
        let bytes = 2 * size_of::<M::Node>() as u64 + if is_first { FIRST_ENTRY } else { 0 };
        self.left = self.left.checked_sub(bytes)?;
        Some(())
    }

    fn descend(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth < MAX_DEPTH).then_some(())
    }

    /// The block sequence in a column, whose first `-` stands at `at`.
    fn sequence(&mut self, column: i32, mut at: usize, keep: bool) -> Option<M::Node> {
        self.descend()?;
        let mut items = Vec::new();
        loop {
            let content = self.skip_spaces(at + 1);
            let inner = column + i32::try_from(content - at).ok()?;
            let item = if self.is_line_end(content) {
                self.end_line(content)?;
                if self.indent > column {
                    self.block(column, keep, None)?
                } else {
                    self.typed("".into(), keep)?
                }
            } else if self.is_entry(content) {
                self.sequence(inner, content, keep)?
            } else if let Some(first) = self.key(content)? {
                self.mapping(inner, first, keep, None)?
            } else {
                self.scalar(content, column, keep)?
            };
            self.count_item()?;
            if keep {
                items.push(item);
            }
            if self.indent != column || !self.is_entry(self.at) {
                break;
            }
            at = self.at;
        }
        self.depth -= 1;
        (self.indent <= column).then(|| self.make.sequence(items, false))
    }

    /// The block mapping in a column, whose first key was read.
    fn mapping(
        &mut self,
        column: i32,
        first: Key<'a>,
        keep: bool,
        filter: Option<Filter<'_>>,
    ) -> Option<M::Node> {
        self.descend()?;
        let mut key = first;
        let mut map = M::Map::default();
        let mut is_first = true;
        loop {
            let keep = keep && filter.is_none_or(|filter| filter.wants_key(&key.name));
            let content = self.skip_spaces(key.end);
            let value = if !self.is_line_end(content) {
                self.scalar(content, column, keep)?
            } else {
                self.end_line(content)?;
                if self.indent > column {
                    self.block(column, keep, filter.and_then(|filter| filter.child(&key.name)))?
                } else if self.indent == column && self.is_entry(self.at) {
                    self.sequence(column, self.at, keep)?
                } else {
                    self.typed("".into(), keep)?
                }
            };
            self.count_entry(std::mem::take(&mut is_first))?;
            if keep {
                self.make.pair(&mut map, key.name, key.style, value)?;
            }
            if self.indent != column {
                break;
            }
            key = self.key(self.at)??;
        }
        self.depth -= 1;
        (self.indent < column).then(|| self.make.mapping(map, false))
    }

    /// The key that starts there: `Some(None)` if something else does, `None` if this is not for here to say.
    fn key(&self, at: usize) -> Option<Option<Key<'a>>> {
        let first = byte(self.bytes, at);
        if matches!(first, b'"' | b'\'') {
            let Some((name, end)) = self.quoted(at)? else { return Some(None) };
            let is_key = byte(self.bytes, end) == b':' && self.is_gap(end + 1) && end - at < MAX_KEY;
            return Some(is_key.then_some(Key { name, style: quoted_style(first), end: end + 1 }));
        }
        if !self.starts_plain(at) {
            return Some(None);
        }
        let mut end = at;
        loop {
            end = self.skip_plain(end);
            match byte(self.bytes, end) {
                b'\n' | 0 => return Some(None),
                b':' if self.is_gap(end + 1) => break,
                b'#' if self.bytes[end - 1] == b' ' => return Some(None),
                b'\t' => return None,
                _ => end += 1,
            }
        }
        let name = &self.text[at..end];
        let is_text = matches!(resolve(name, M::PROFILE), Scalar::Str(_)) && name != "<<";
        (is_text && !name.ends_with(' ') && name.len() < MAX_KEY)
            .then(|| Some(Key { name: name.into(), style: Style::Plain, end: end + 1 }))
    }

    /// Skips what means nothing in a plain scalar.
    fn skip_plain(&self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        at + rest.iter().position(|b| SPECIAL[usize::from(*b)]).unwrap_or(rest.len())
    }

    /// Whether a plain scalar may start there.
    fn starts_plain(&self, at: usize) -> bool {
        match byte(self.bytes, at) {
            b'-' => !matches!(byte(self.bytes, at + 1), b' ' | b'\n' | b'\t' | 0),
            b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>'
            | b'\'' | b'"' | b'%' | b'@' | b'`' | b' ' | b'\t' | b'\n' | 0 => false,
            _ => true,
        }
    }
}

/// The style of a scalar in such quotes.
fn quoted_style(quote: u8) -> Style {
    if quote == b'"' { Style::DoubleQuoted } else { Style::SingleQuoted }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::borrow::Cow;

    use super::{Budget, Make, Wanted, read, read_simple};
    use crate::{
        Node, Profile, Style,
        decode::{Decoder, Floats},
        parse_first, resolve,
    };
    use serde_json::Value;

    /// What the whole parser makes of a text.
    fn reference(text: &str, strict: bool) -> Result<Value, String> {
        match parse_first(text, Profile::Go2).map_err(|error| error.to_string())? {
            Some(document) => {
                Decoder::decode(&document.root, Profile::Go2, strict, Floats::AsJson, &Budget::of_text())
                    .map_err(|error| error.to_string())
            }
            None => Ok(Value::Null),
        }
    }

    fn wanted_of(text: &str, wanted: Wanted<'_>) -> Option<Value> {
        read(text, false, Floats::AsJson, Some(wanted), &Budget::of_text())
    }

    /// Makes the nodes of go-yaml v3, without places and comments.
    struct Nodes;

    impl Make for Nodes {
        type Node = Node;
        type Map = Vec<(Node, Node)>;
        const PROFILE: Profile = Profile::Go3;

        fn plain(&mut self, text: Cow<'_, str>) -> Option<Node> {
            let tag = resolve(&text, Profile::Go3).tag();
            Some(Node { tag: tag.into(), ..Node::scalar(text.as_ref()) })
        }
        fn text(&mut self, text: Cow<'_, str>, style: Style) -> Node {
            Node { tag: "!!str".into(), style, ..Node::scalar(text.as_ref()) }
        }
        fn sequence(&mut self, items: Vec<Node>, flow: bool) -> Node {
            let style = if flow { Style::Flow } else { Style::Plain };
            Node { tag: "!!seq".into(), style, ..Node::sequence(items) }
        }
        fn pair(&mut self, map: &mut Self::Map, key: Cow<'_, str>, style: Style, value: Node) -> Option<()> {
            let key = self.text(key, style);
            map.push((key, value));
            Some(())
        }
        fn mapping(&mut self, map: Self::Map, flow: bool) -> Node {
            let style = if flow { Style::Flow } else { Style::Plain };
            Node { tag: "!!map".into(), style, ..Node::mapping(map) }
        }
        fn unwanted_node() -> Node {
            Node::null()
        }
    }

    /// A node without its place and comments.
    fn bare(node: Node) -> Node {
        let content = match node.content {
            crate::Content::Mapping(pairs) => {
                let pairs = pairs.into_iter().map(|(key, value)| (bare(key), bare(value)));
                crate::Content::Mapping(pairs.collect())
            }
            crate::Content::Sequence(items) => {
                crate::Content::Sequence(items.into_iter().map(bare).collect())
            }
            other => other,
        };
        Node { content, comments: None, span: crate::Span::default(), ..node }
    }

    /// Holds the nodes of both readers against each other.
    fn compare_nodes(text: &str) {
        if let Some(node) = read_simple(text, &mut Nodes) {
            let whole = parse_first(text, Profile::Go3).unwrap_or_else(|error| panic!("{error}: {text:?}"));
            assert_eq!(node, whole.map(|document| bare(document.root)), "{text:?}");
        }
    }

    /// Lines as manifests have them, in any order and indentation.
    fn lines() -> impl Strategy<Value = String> {
        let line = (0..5usize, prop::sample::select(&LINES[..]))
            .prop_map(|(indent, line)| format!("{}{line}", "  ".repeat(indent)));
        prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
    }

    const LINES: [&str; 69] = [
        "a: 1",
        "b:",
        "c: x y",
        "- a: 1",
        "- b:",
        "-",
        "- x",
        "- - y",
        "- - z: 1",
        "",
        "   ",
        "# c",
        "d: # c",
        "e: v # c",
        "f: v#c",
        "g: \"q\"",
        "h: 'it''s'",
        "i: \"a\\n\\\"b\\\"\"",
        "j: \"a\\x41\"",
        "k: |",
        "l: |-",
        "m: |+",
        "n: >",
        "o: >-",
        "p: |2",
        "q: {}",
        "r: []",
        "s: [a, 1, \"b\"]",
        "t: {a: 1, \"b\":2}",
        "u: {a: }",
        "v: a: b",
        "w: *x",
        "x: &x y",
        "y: yes",
        "on: 1",
        "1: x",
        "z: 0x1F",
        "t1: 2001-01-01",
        "t2: 1e3",
        "t3: .inf",
        "t4: ~",
        "t5: \"a\" b",
        "t6: -",
        "t7: --x",
        "t8: [a, b",
        "plain",
        "plain more",
        "\"quoted\": 1",
        "'q': 2",
        "\"q\" : 3",
        "\tx",
        "x\ty: 1",
        "---",
        "...",
        "é: ü",
        "a: 1_000",
        "t9: 'a",
        "t10: @x",
        "t11: a,b",
        "<<: x",
        "? a",
        "a : b",
        "- 'a",
        "{}",
        "[a, b] # c",
        "|",
        "more'",
        "u1: \"a",
        "b\"",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn reads_what_the_parser_reads(text in lines(), newline: bool, strict: bool) {
            let text = if newline { format!("{text}\n") } else { text };
            if let Some(value) = read(&text, strict, Floats::AsJson, None, &Budget::of_text()) {
                prop_assert_eq!(Ok(value), reference(&text, strict), "{}", text);
            }
            compare_nodes(&text);
        }

        #[test]
        fn reads_noise_as_the_parser_does(text in "[a-c:\\-#\"'|>{}\\[\\], \\n1é]{0,40}") {
            if let Some(value) = read(&text, false, Floats::AsJson, None, &Budget::of_text()) {
                prop_assert_eq!(Ok(value), reference(&text, false), "{}", text);
            }
            compare_nodes(&text);
        }
    }

    #[test]
    fn reads_a_manifest() {
        let text = "# Source: x\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"a\"\n  labels: {}\n  annotations:\n    x/y: 'true'\ndata:\n  key: |-\n    one\n\n      two\n  empty:\nlist:\n- a: 1\n  b:\n  - [x, 2]\n-\n  - 1.5\n";
        let value = read(text, true, Floats::AsJson, None, &Budget::of_text()).expect("simple");
        assert_eq!(Ok(value), reference(text, true));
    }

    #[test]
    fn keeps_only_what_is_wanted_and_reads_the_rest() {
        let text = "kind: A\nspec:\n  a: [1, 2]\n  b: |\n    x\nmetadata: {name: x}\n";
        let value = wanted_of(text, &|keys| keys != ["spec"]).expect("simple");
        assert_eq!(value, serde_json::json!({"kind": "A", "metadata": {"name": "x"}}));
        let text = "kind: A\nmetadata:\n  name: x\n  labels:\n    name: z\n    a: b\n";
        let names = |keys: &[&str]| keys == ["metadata"] || keys == ["metadata", "name"];
        let value = wanted_of(text, &names).expect("simple");
        assert_eq!(value, serde_json::json!({"metadata": {"name": "x"}}));
        let value = wanted_of(text, &|keys| keys != ["kind"]).expect("simple");
        assert_eq!(value, serde_json::json!({"metadata": {"name": "x", "labels": {"name": "z", "a": "b"}}}));
        assert!(wanted_of("kind: A\nspec:\n  a: *x\n", &|keys| keys == ["kind"]).is_none());
        assert!(wanted_of("kind: A\nspec: .inf\n", &|keys| keys == ["kind"]).is_none());
    }
}
