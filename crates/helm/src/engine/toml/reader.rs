//! The tables of a TOML text, with the rules of `github.com/BurntSushi/toml` for what may be said twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use tiphys_gocompat::strconv::quote;
use tiphys_gotemplate::{List, ListType, Map, MapType, Value};

use super::{
    MAX_DEPTH, quoted_key,
    scan::{Scan, Scanner, TomlError},
};

/// The largest text that is read, in bytes: what is kept of it takes a hundred times that at worst.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// Bytes that the names of a key and of the tables around it may have together.
const MAX_PATH: usize = 1024;

/// Reads a TOML text.
///
/// # Errors
/// What is wrong with it, in Go's words; or a limit, in ours.
pub(crate) fn decode(text: &str) -> Result<Value, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("toml: the text is larger than the limit of {MAX_TEXT} bytes"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.bytes().take(6).any(|byte| byte == 0) {
        return Err(
            "toml: line 1: files cannot contain NULL bytes; probably using UTF-16; TOML files must be UTF-8"
                .to_owned(),
        );
    }
    let mut reader = Reader {
        scanner: Scanner::new(text),
        root: Table::new(),
        context: Vec::new(),
        current: String::new(),
        key_line: 0,
        implicit: HashSet::new(),
        arrays: HashMap::new(),
    };
    match reader.document() {
        Ok(()) => Ok(map_of(reader.root)),
        Err(TomlError { line, message }) => {
            let last = reader.last_key();
            let last = if last.is_empty() { last } else { format!(" (last key {})", quote(&last)) };
            Err(format!("toml: line {line}{last}: {message}"))
        }
    }
}

type Table = BTreeMap<String, Node>;

enum Node {
    Value(Value),
    Table(Table),
    /// Tables with headers in double brackets.
    Tables(Vec<Table>),
}

fn map_of(table: Table) -> Value {
    let map = Map::with_type(MapType::Any);
    for (key, node) in table {
        let value = match node {
            Node::Value(value) => value,
            Node::Table(table) => map_of(table),
            Node::Tables(tables) => {
                Value::List(List::with_type(ListType::Maps, tables.into_iter().map(map_of).collect()))
            }
        };
        map.insert(key.as_str(), value);
    }
    Value::Map(map)
}

/// A key as messages have it.
fn dotted(key: &[String]) -> String {
    key.iter().map(|part| quoted_key(part)).collect::<Vec<_>>().join(".")
}

/// The table at a path, of several the last one; else how much of the path leads to something else.
fn newest<'n>(mut table: &'n mut Table, path: &[String]) -> Result<&'n mut Table, usize> {
    for (at, part) in path.iter().enumerate() {
        table = match table.get_mut(part) {
            Some(Node::Table(table)) => table,
            Some(Node::Tables(tables)) => tables.last_mut().ok_or(at + 1)?,
            _ => return Err(at + 1),
        };
    }
    Ok(table)
}

struct Reader<'t> {
    scanner: Scanner<'t>,
    root: Table,
    /// The table that keys belong to.
    context: Vec<String>,
    /// The key whose value is being read; in an inline table it stays until the next one has its equals sign.
    current: String,
    /// The line of the key or table that was named last.
    key_line: usize,
    /// Tables that only keys below them have made.
    implicit: HashSet<String>,
    /// Whether what stands under a key is an array.
    arrays: HashMap<String, bool>,
}

impl Reader<'_> {
    fn document(&mut self) -> Scan<()> {
        while let Some(first) = self.scanner.top()? {
            if first == '[' {
                self.scanner.next()?;
                let (key, several, line) = self.scanner.table_name()?;
                self.key_line = line;
                self.enter(&key, several)?;
                self.arrays.insert(dotted(&self.context), false);
            } else {
                self.pair(0)?;
                self.current.clear();
            }
            self.scanner.line_end()?;
        }
        Ok(())
    }

    /// The key that is being read, or its table.
    fn last_key(&self) -> String {
        match (self.current.is_empty(), self.context.is_empty()) {
            (true, _) => dotted(&self.context),
            (false, true) => self.current.clone(),
            (false, false) => format!("{}.{}", dotted(&self.context), self.current),
        }
    }

    fn fail<T>(&self, message: String) -> Scan<T> {
        Err(TomlError { line: self.key_line, message })
    }

    fn defined<T>(&self, key: &[String]) -> Scan<T> {
        self.fail(format!("Key '{}' has already been defined.", dotted(key)))
    }

    /// A key and its value, which is put where it belongs and handed back with the path to it from the table
    /// around.
    fn pair(&mut self, depth: usize) -> Scan<(Vec<String>, Value)> {
        let outer = self.context.clone();
        let (mut key, line) = self.scanner.key()?;
        self.key_line = line;
        let path = key.clone();
        self.within_limits(&[outer.as_slice(), &path].concat())?;
        self.current = key.pop().unwrap_or_default();
        for part in key {
            let mut table = self.context.clone();
            table.push(part);
            self.implicit.insert(dotted(&table));
            self.enter(&table, false)?;
        }
        let (value, is_array) = self.value(false, depth)?;
        let own = self.current.clone();
        self.insert(&own, Node::Value(value.clone()))?;
        self.arrays.insert(self.path_of(&own), is_array);
        self.context = outer;
        Ok((path, value))
    }

    fn path_of(&self, key: &str) -> String {
        dotted(&[self.context.as_slice(), &[key.to_owned()]].concat())
    }

    /// A value, and whether it is an array.
    fn value(&mut self, in_array: bool, depth: usize) -> Scan<(Value, bool)> {
        if depth > MAX_DEPTH {
            return self.scanner.fail(format!("values nest deeper than the limit of {MAX_DEPTH}"));
        }
        match self.scanner.value_start()? {
            '[' => {
                self.scanner.next()?;
                self.arrays.insert(self.path_of(&self.current), true);
                let mut items = Vec::new();
                let mut more = self.scanner.another(']')?;
                while more {
                    items.push(self.value(true, depth + 1)?.0);
                    more = self.scanner.has_more(']')? && self.scanner.another(']')?;
                }
                Ok((Value::List(List::with_type(ListType::Any, items)), true))
            }
            '{' => {
                self.scanner.next()?;
                self.inline(in_array, depth).map(|table| (table, false))
            }
            _ => self.scanner.scalar().map(|value| (value, false)),
        }
    }

    fn inline(&mut self, in_array: bool, depth: usize) -> Scan<Value> {
        let (outer, outer_key) = (self.context.clone(), std::mem::take(&mut self.current));
        let mut own = outer.clone();
        own.push(outer_key.clone());
        self.context.clone_from(&own);
        self.implicit.insert(dotted(&own));
        self.enter(&own, in_array)?;
        let table = Map::with_type(MapType::Any);
        let mut more = self.scanner.another('}')?;
        while more {
            self.context.clone_from(&own);
            let (path, value) = self.pair(depth + 1)?;
            self.nest(&table, &path, value)?;
            more = self.scanner.has_more('}')? && self.scanner.another('}')?;
        }
        (self.context, self.current) = (outer, outer_key);
        Ok(Value::Map(table))
    }

    /// Puts a value below a table of an inline table.
    fn nest(&self, table: &Map, path: &[String], value: Value) -> Scan<()> {
        let Some((last, above)) = path.split_last() else { return Ok(()) };
        let mut table = table.clone();
        for key in above {
            let inner = table.get(key).unwrap_or_else(|| {
                let inner = Value::Map(Map::with_type(MapType::Any));
                table.insert(key.as_str(), inner.clone());
                inner
            });
            match inner {
                Value::Map(map) => table = map,
                _ => return self.fail(format!("{} is not a table", quote(&dotted(&self.context)))),
            }
        }
        table.insert(last.as_str(), value);
        Ok(())
    }

    /// Whether a key lies as deep, and has as long a name, as it may.
    fn within_limits(&self, key: &[String]) -> Scan<()> {
        if key.len() > MAX_DEPTH {
            return self.fail(format!("tables nest deeper than the limit of {MAX_DEPTH}"));
        }
        if key.iter().map(String::len).sum::<usize>() > MAX_PATH {
            return self.fail(format!("the names of a key and its tables have more than {MAX_PATH} bytes"));
        }
        Ok(())
    }

    /// Makes a table the one that keys belong to; it may be one of several.
    fn enter(&mut self, key: &[String], several: bool) -> Scan<()> {
        self.within_limits(key)?;
        let Some((last, above)) = key.split_last() else { return Ok(()) };
        let mut table = &mut self.root;
        for (at, part) in above.iter().enumerate() {
            if !table.contains_key(part) {
                self.implicit.insert(dotted(&above[..=at]));
            }
            let node = table.entry(part.clone()).or_insert_with(|| Node::Table(Table::new()));
            table = match node {
                Node::Table(table) => table,
                Node::Tables(tables) if !tables.is_empty() => {
                    let newest = tables.len() - 1;
                    &mut tables[newest]
                }
                _ => {
                    let path = dotted(&above[..=at]);
                    return self.fail(format!("Key '{path}' was already created as a hash."));
                }
            };
        }
        self.context = above.to_vec();
        if several {
            match table.entry(last.clone()).or_insert_with(|| Node::Tables(Vec::new())) {
                Node::Tables(tables) => tables.push(Table::new()),
                _ => {
                    let path = dotted(key);
                    return self
                        .fail(format!("Key '{path}' was already created and cannot be used as an array."));
                }
            }
        } else {
            self.insert(last, Node::Table(Table::new()))?;
        }
        self.context.push(last.clone());
        Ok(())
    }

    /// Puts something under a key of the current table. A table that was only implied may be named
    /// afterwards.
    fn insert(&mut self, key: &str, node: Node) -> Scan<()> {
        let path = self.path_of(key);
        let (is_implicit, is_array) =
            (self.implicit.contains(&path), self.arrays.get(&path).copied().unwrap_or(false));
        let table = match newest(&mut self.root, &self.context) {
            Ok(table) => table,
            Err(keep) => return self.defined(&self.context[..keep]),
        };
        if !table.contains_key(key) {
            table.insert(key.to_owned(), node);
            return Ok(());
        }
        if !is_implicit {
            return self.defined(&[self.context.as_slice(), &[key.to_owned()]].concat());
        }
        if is_array {
            table.insert(key.to_owned(), node);
        }
        self.implicit.remove(&path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tiphys_gotemplate::json;

    use super::*;

    #[test]
    fn tables_keys_and_values_are_read() {
        let text = "title = 'a\\b' # note\n\n[server.\"the port\"]\nn = 0x1F\nat = 07:32\n[[part]]\nsize = [1_000, -0.5,\n]\n\
                    [[part]]\nmade = {by.name = \"x\\u00e9\", on = 2020-02-29}\ntext = \"\"\"\nl1 \\\n  l2\"\"\"\"\n";
        let read = decode(text).unwrap();
        assert_eq!(
            json::to_string(&read, json::Options::default()).unwrap(),
            r#"{"part":[{"size":[1000,-0.5]},{"made":{"by":{"name":"xé"},"on":"2020-02-29T00:00:00Z"},"text":"l1 l2\""}],"server":{"the port":{"at":"0000-01-01T07:32:00Z","n":31}},"title":"a\\b"}"#
        );
    }

    #[test]
    fn faults_are_told_with_line_and_key() {
        for (text, fault) in [
            ("a = 1\na = 2\n", "line 2 (last key \"a\"): Key 'a' has already been defined."),
            ("[t]\nx = 1\n[t]\n", "line 3: Key 't' has already been defined."),
            (
                "[t]\n[t.u]\n[[t.u]]",
                "line 3 (last key \"t\"): Key 't.u' was already created and cannot be used as an array.",
            ),
            ("a = 1\n[a.b]", "line 2: Key 'a' was already created as a hash."),
            ("a: 1", "line 1: expected '.' or '=', but got ':' instead"),
            ("[t]\nname\n", "line 2 (last key \"t\"): expected '.' or '=', but got '\\n' instead"),
            ("null", "line 1: unexpected EOF; expected key separator '='"),
            ("= 1", "line 1: unexpected '=': key name appears blank"),
            ("x = word", "line 1 (last key \"x\"): expected value but found \"word\" instead"),
            ("x =\n", "line 1 (last key \"x\"): expected value but found '\\n' instead"),
            ("[t]\nx = \"open\n", "line 2 (last key \"t.x\"): strings cannot contain newlines"),
            ("x = 'open", "line 1 (last key \"x\"): unexpected EOF; expected \"'\""),
            (
                "x = 1 y = 2",
                "line 1: expected a top-level item to end with a newline, comment, or EOF, but got 'y' instead",
            ),
            ("x = \"\\q\"", "line 1 (last key \"x\"): invalid escape in string '\\q'"),
            (
                "x = [1 2]",
                "line 1 (last key \"x\"): expected a comma (',') or array terminator (']'), but got '2'",
            ),
            (
                "x = {a = 1 b = 2}",
                "line 1 (last key \"x.a\"): expected a comma or an inline table terminator '}', but got 'b' instead",
            ),
            ("x = 01", "line 1 (last key \"x\"): Invalid integer \"01\": cannot have leading zeroes"),
            (
                "x = 1.",
                "line 1 (last key \"x\"): Invalid float \"1.\": '.' must be followed by one or more digits",
            ),
            (
                "x = 9223372036854775808",
                "line 1 (last key \"x\"): 9223372036854775808 is out of range for int64",
            ),
            ("x = 2020-13-01", "line 1 (last key \"x\"): invalid datetime: \"2020-13-01\""),
            ("[a.]", "line 1: unexpected end of table name (table names cannot be empty)"),
            ("[[a]", "line 1: expected end of table array name delimiter ']', but got '\\x00' instead"),
            ("x = 1 # \u{1}", "line 1: TOML files cannot contain control characters: '0x01'"),
        ] {
            assert_eq!(decode(text).err().unwrap(), format!("toml: {fault}"), "{text}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let text = format!("x = {}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(decode(&text).err().unwrap().contains("deeper than the limit"));
        for text in [
            format!("{}a = 1", "a.".repeat(20_000)),
            format!("[{}a]", "a.".repeat(20_000)),
            format!("x = {{{}a = 1}}", "a.".repeat(20_000)),
            format!("[[a.b]]\nx = [{{{}a = {{}}}}]", "a.".repeat(97)),
        ] {
            assert!(decode(&text).err().unwrap().contains("tables nest deeper than the limit of 100"));
        }
    }

    #[test]
    fn names_and_texts_have_limits() {
        let long = format!("[{}]\nk = 1", "a".repeat(2000));
        assert!(decode(&long).err().unwrap().contains("more than 1024 bytes"));
        let key = format!("[a]\n{} = 1", "k".repeat(2000));
        assert!(decode(&key).err().unwrap().contains("more than 1024 bytes"));
        let large = "k = 1\n".repeat(MAX_TEXT / 6 + 1);
        assert!(decode(&large).err().unwrap().contains("larger than the limit"));
    }
}
