//! Reading values files.

use std::{borrow::Cow, sync::Arc};

use tiphys_value::{Value, json_kind};
use tiphys_yaml::{
    Make, Profile, Style, decode_text, from_yaml, plain_value, read_simple, split_kubernetes_documents,
};

use super::{Table, Val, merge_maps};
use crate::Compat;

/// The values of a file. Helm 4 lays every document over those before it; Helm 3 reads the first.
///
/// # Errors
/// Helm's text for a file that is no YAML or holds no table.
pub(crate) fn read_values(bytes: &[u8], compat: Compat) -> Result<Table, String> {
    if compat == Compat::Helm4 && is_utf16(bytes) {
        return read_utf16(bytes);
    }
    let text = decode_text(bytes).map_err(|_| not_utf8(bytes, compat))?;
    let text = &*text;
    if compat == Compat::Helm3 {
        return read_document(text);
    }
    let mut values = Table::new();
    // Helm reads line by line and ends each with a newline: so does a block scalar on the last line.
    let ended = if text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) };
    for (start, document) in
        split_kubernetes_documents(&ended).map_err(|error| format!("error reading yaml document: {error}"))?
    {
        let table = read_document(document).or_else(|_| {
            // Lines are counted from where Helm's document begins.
            let begin = start - separator_before(&ended[..start]);
            read_document(&ended[begin..start + document.len()])
                .map_err(|error| format!("cannot unmarshal yaml document: {error}"))
        })?;
        if values.is_empty() {
            values = table;
        } else {
            merge_maps(&mut values, &table);
        }
    }
    Ok(values)
}

/// The length of the separator at the end of a text, if it is part of the document behind it: one that ends
/// no document, since there is none before it, begins the next one.
fn separator_before(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n').rev();
    let mut separators = lines.by_ref().take_while(|line| line.starts_with("---"));
    let last = separators.next().map_or(0, str::len);
    let more = separators.count();
    // The first of a row ends what stands before the row, if anything does.
    let ends = usize::from(text.split_inclusive('\n').count() > more + 1);
    if last > 0 && (more + 1 - ends) % 2 == 1 { last } else { 0 }
}

fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF")
}

/// Helm 4 cuts files into lines before it knows their encoding, and ends the last with a newline of one byte:
/// only texts of big units that end with a newline stay whole.
fn read_utf16(bytes: &[u8]) -> Result<Table, String> {
    let unmarshal = |error| format!("cannot unmarshal yaml document: {error}");
    let ended =
        if bytes.ends_with(b"\n") { Cow::Borrowed(bytes) } else { Cow::Owned([bytes, b"\n"].concat()) };
    let text =
        decode_text(&ended).map_err(|error| unmarshal(format!("error converting YAML to JSON: {error}")))?;
    read_document(&text).map_err(unmarshal)
}

/// Helm's text for bytes that are not UTF-8; Helm 4 reads them document by document.
fn not_utf8(bytes: &[u8], compat: Compat) -> String {
    let (wrapper, separator) = match compat {
        Compat::Helm4 => ("cannot unmarshal yaml document: ", "\n---"),
        Compat::Helm3 => ("", ""),
    };
    let bad = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let end = match separator {
        "" => bytes.len(),
        separator => {
            let next =
                bytes[bad..].windows(separator.len()).position(|window| window == separator.as_bytes());
            next.map_or(bytes.len(), |at| bad + at + 1)
        }
    };
    let error = decode_text(&bytes[..end]).err().map(|error| error.to_string()).unwrap_or_default();
    format!("{wrapper}error converting YAML to JSON: {error}")
}

fn read_document(text: &str) -> Result<Table, String> {
    // What is no table is left to those who have the words for it.
    match read_simple(text, &mut Values) {
        Some(None) => return Ok(Table::new()),
        Some(Some(Val::Table(table))) => return Ok(Arc::unwrap_or_clone(table)),
        _ => {}
    }
    let value = from_yaml(text).map_err(|error| format!("error converting YAML to JSON: {error}"))?;
    match value {
        Value::Object(map) => {
            Ok(map.into_iter().map(|(key, value)| (Arc::from(key), Val::from_json(value))).collect())
        }
        Value::Null => Ok(Table::new()),
        other => Err(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_kind(&other)
        )),
    }
}

/// Makes values of a simple text, the same as those of what [`from_yaml`] reads.
struct Values;

impl Make for Values {
    type Node = Val;
    type Map = Table;
    const PROFILE: Profile = Profile::Go2;

    fn plain(&mut self, text: Cow<'_, str>) -> Option<Val> {
        plain_value(&text).map(Val::from_json)
    }

    fn text(&mut self, text: Cow<'_, str>, _: Style) -> Val {
        Val::string(&text)
    }

    fn sequence(&mut self, items: Vec<Val>, _: bool) -> Val {
        Val::List(Arc::new(items))
    }

    fn pair(&mut self, table: &mut Table, key: Cow<'_, str>, _: Style, value: Val) -> Option<()> {
        table.insert(Arc::from(key), value);
        Some(())
    }

    fn mapping(&mut self, table: Table, _: bool) -> Val {
        Val::Table(Arc::new(table))
    }

    fn unwanted_node() -> Val {
        Val::Null
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_the_separator_that_begins_a_document() {
        let bad = "a: 1\nst";
        for (before, line) in [
            ("", 3),
            ("---\n", 4),
            // Of two the second ends what the first begins, of three the last begins anew.
            ("---\n---\n", 3),
            ("---\n---\n--- # c\n", 4),
            ("x: 1\n---\n", 3),
            ("x: 1\n---\n---\n", 4),
        ] {
            let error = read_values(format!("{before}{bad}").as_bytes(), Compat::Helm4).unwrap_err();
            assert!(
                error.ends_with(&format!("yaml: line {line}: could not find expected ':'")),
                "{before:?}: {error}"
            );
        }
        assert_eq!(read_values(b"---\n---\na: 1\n---\nb: 2\n", Compat::Helm4).unwrap().len(), 2);
    }

    /// What is made of the whole of YAML.
    fn as_json(text: &str) -> Table {
        match from_yaml(text).unwrap() {
            Value::Object(map) => {
                map.into_iter().map(|(key, value)| (Arc::from(key), Val::from_json(value))).collect()
            }
            _ => Table::new(),
        }
    }

    #[test]
    fn simple_values_are_those_of_the_whole_of_yaml() {
        for text in [
            "",
            "# nothing\n",
            "a: 1\nb: [x, 0x1F, -0.0, 1.5, 1e3, 12e18, 1_000]\nc: {d: ~, e: yes, f: 'it''s'}\n",
            "list:\n- a: 1\n  b: |\n    two\n    lines\n- ''\n- - 018\n  - 0o7\n",
            "twice: 1\ntwice: 2\n",
            "date: 2001-12-14\nmerge: <<\nnan: .nan-\nbig: 18446744073709551615\n",
            "anchors: &a {x: 1}\nmore: *a\n",
        ] {
            assert_eq!(read_values(text.as_bytes(), Compat::Helm4), Ok(as_json(text)), "{text}");
        }
    }

    #[test]
    fn utf_16_is_read_as_each_helm_reads_it() {
        let write = |mark: &[u8], bytes: fn(u16) -> [u8; 2], text: &str| -> Vec<u8> {
            mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
        };
        let little = |text| write(b"\xFF\xFE", u16::to_le_bytes, text);
        let big = |text| write(b"\xFE\xFF", u16::to_be_bytes, text);
        let text = "a: é\r\nb: 1\r\n";
        assert_eq!(read_values(&little(text), Compat::Helm3), Ok(as_json(text)));
        assert_eq!(read_values(&big("a: 1"), Compat::Helm3), Ok(as_json("a: 1")));
        assert_eq!(read_values(&big(text), Compat::Helm4), Ok(as_json(text)));
        for torn in [little(text), little("a: 1"), big("a: 1")] {
            assert_eq!(
                read_values(&torn, Compat::Helm4).unwrap_err(),
                "cannot unmarshal yaml document: error converting YAML to JSON: yaml: incomplete UTF-16 character"
            );
        }
    }

    #[test]
    fn what_is_no_table_is_told_as_ever() {
        let error = read_values(b"- 1\n", Compat::Helm4).unwrap_err();
        assert!(error.contains("cannot unmarshal array into Go value"), "{error}");
    }
}
