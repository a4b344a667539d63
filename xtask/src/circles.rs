//! `cargo xtask tidy`, fourth part: files of a crate that use each other in a circle can only be read
//! together. Circles of more than five files are faults.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;

use crate::git_files;

/// How many files a circle may have.
const LARGEST: usize = 5;

/// A module by its path below the root of its crate.
type Module = Vec<String>;

/// Looks at the modules of every crate.
///
/// # Errors
/// Names the files of each circle that is too large.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut crates: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    for (file, text) in git_files::matching("*/src/*.rs")? {
        let Some((name, path)) = file.split_once("/src/") else { continue };
        crates.entry(name.to_owned()).or_default().insert(module_of(path), text);
    }
    let mut faults = Vec::new();
    for (name, texts) in &crates {
        let modules = Modules::read(texts);
        let circles = modules.circles();
        let large: Vec<&Vec<&Module>> = circles.iter().filter(|circle| circle.len() > LARGEST).collect();
        for circle in large {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            faults.push(format!(
                "{name}: a circle of {} files, at most {LARGEST} may be: {}",
                names.len(),
                names.join(", ")
            ));
        }
    }
    if faults.is_empty() {
        println!("tidy: no circle of more than {LARGEST} files");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// The module that is in a file, by its path below `src`.
fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let mut parts: Module = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// The modules of a crate, with what each names of the others.
struct Modules {
    /// The paths that each module names.
    named: BTreeMap<Module, Vec<Vec<String>>>,
    /// What each module calls by a name though another module defines it; those below it may, too.
    in_scope: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Modules {
    fn read(texts: &BTreeMap<Module, String>) -> Self {
        let mut modules = Self { named: BTreeMap::new(), in_scope: BTreeMap::new() };
        for (module, text) in texts {
            let tokens = tokens(text);
            let (declared, rest) = declarations(&tokens);
            let mut named: Vec<Vec<String>> = Vec::new();
            let in_scope = modules.in_scope.entry(module.clone()).or_default();
            for Declaration { path, name, is_export } in declared {
                if !is_export {
                    named.push(path.clone());
                }
                in_scope.insert(name, path);
            }
            for path in inline_paths(&rest) {
                named.push(match in_scope.get(path[0].as_str()) {
                    Some(base) => [base.as_slice(), &path[1..]].concat(),
                    None => path,
                });
            }
            modules.named.insert(module.clone(), named);
        }
        modules
    }

    /// The module that defines what a path names from within a module; `None` if that is another crate's, or
    /// if the path names a module: what is used of that is named elsewhere.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        const MAX_DEPTH: usize = 16;
        let (mut base, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" | "super" => (from.clone(), path),
            first => {
                let own = [from.as_slice(), &[first.to_owned()]].concat();
                (self.named.contains_key(&own).then(|| from.clone())?, path)
            }
        };
        while let [first, below @ ..] = rest {
            match first.as_str() {
                "self" => {}
                "super" => drop(base.pop()),
                _ => {
                    let inner = [base.as_slice(), std::slice::from_ref(first)].concat();
                    if !self.named.contains_key(&inner) {
                        break;
                    }
                    base = inner;
                }
            }
            rest = below;
        }
        let other = self.in_scope.get(&base).and_then(|in_scope| in_scope.get(rest.first()?));
        match other.filter(|_| depth < MAX_DEPTH) {
            Some(other) => self.resolve(&base, &[other.as_slice(), &rest[1..]].concat(), depth + 1),
            None => (!rest.is_empty()).then_some(base),
        }
    }

    /// Which modules each module uses. The root of a crate puts its modules together; it is in no circle.
    fn edges(&self) -> BTreeMap<&Module, BTreeSet<&Module>> {
        let used = |module: &Module, paths: &[Vec<String>]| {
            let all = paths.iter().filter_map(|path| self.resolve(module, path, 0));
            all.filter(|used| used != module && !used.is_empty())
                .filter_map(|used| self.named.get_key_value(&used).map(|(known, _)| known))
                .collect()
        };
        self.named.iter().map(|(module, paths)| (module, used(module, paths))).collect()
    }

    /// The circles: modules that reach each other, the largest first.
    fn circles(&self) -> Vec<Vec<&Module>> {
        let edges = self.edges();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            edges.keys().map(|module| (*module, reached_from(module, &edges))).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for (module, all) in &reached {
            if seen.contains(module) || !all.contains(module) {
                continue;
            }
            let circle: Vec<&Module> =
                all.iter().copied().filter(|other| reached[other].contains(module)).collect();
            seen.extend(circle.iter().copied());
            circles.push(circle);
        }
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

/// All modules that a module uses, and that these use, and so on.
fn reached_from<'a>(
    module: &'a Module,
    edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![module];
    while let Some(next) = open.pop() {
        for used in edges.get(next).into_iter().flatten() {
            if reached.insert(*used) {
                open.push(used);
            }
        }
    }
    reached
}

/// One name that a `use` declares.
struct Declaration {
    path: Vec<String>,
    name: String,
    /// Others can use it from here.
    is_export: bool,
}

/// What a file declares by `use`, and the rest of it.
fn declarations<'a>(tokens: &[&'a str]) -> (Vec<Declaration>, Vec<&'a str>) {
    let (mut declared, mut rest) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] != "use" {
            rest.push(tokens[at]);
            at += 1;
            continue;
        }
        let is_export = at > 0 && matches!(tokens[at - 1], "pub" | ")");
        let length = tokens[at..].iter().position(|token| *token == ";").unwrap_or(tokens.len() - at);
        let paths = paths_of(&tokens[at + 1..at + length]).into_iter();
        declared.extend(paths.map(|(path, name)| Declaration { path, name, is_export }));
        at += length;
    }
    (declared, rest)
}

/// The paths that are written where they are used.
fn inline_paths(tokens: &[&str]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut path: Vec<String> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let follows = at > 0 && tokens[at - 1] == "::";
        if is_name(token) && (!follows || !path.is_empty()) {
            if !follows {
                paths.extend(Some(std::mem::take(&mut path)).filter(|path| path.len() > 1));
            }
            path.push((*token).to_owned());
        } else if *token != "::" {
            paths.extend(Some(std::mem::take(&mut path)).filter(|path| path.len() > 1));
        }
    }
    paths.extend(Some(path).filter(|path| path.len() > 1));
    paths
}

/// The paths of a declaration, with the names that they have then.
fn paths_of(tokens: &[&str]) -> Vec<(Vec<String>, String)> {
    let mut paths = Vec::new();
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut alias: Option<String> = None;
    let mut end = |path: &mut Vec<String>, alias: &mut Option<String>, base: &[String]| {
        if path.len() > base.len() {
            path.retain(|part| part != "self" || base.is_empty());
            let name = alias.take().or_else(|| path.last().cloned());
            paths.push((path.clone(), name.unwrap_or_default()));
        }
        *path = base.to_vec();
    };
    for token in tokens {
        let base = groups.last().cloned().unwrap_or_default();
        match *token {
            "{" => groups.push(path.clone()),
            "," => end(&mut path, &mut alias, &base),
            "}" => {
                end(&mut path, &mut alias, &base);
                groups.pop();
                path = groups.last().cloned().unwrap_or_default();
            }
            "as" => alias = Some(String::new()),
            name if !is_name(name) && name != "*" => {}
            name => match &mut alias {
                Some(alias) => name.clone_into(alias),
                None => path.push(name.to_owned()),
            },
        }
    }
    end(&mut path, &mut alias, &[]);
    paths
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names and signs of a file before its tests, without comments and texts.
fn tokens(text: &str) -> Vec<&str> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => text_length(rest),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#") => raw_length(rest),
            '\'' => character_length(rest),
            ':' if rest.starts_with("::") => 2,
            c if c.is_alphabetic() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length.min(rest.len()));
        let is_skipped = first.is_whitespace() || token.starts_with(['/', '"', '\'']);
        if !is_skipped {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

/// The length of the text literal that something starts with.
fn text_length(rest: &str) -> usize {
    let mut is_escaped = false;
    let end = rest[1..].find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(rest.len(), |end| end + 2)
}

/// The length of the raw text literal that something starts with, or of the name that only looks so.
fn raw_length(rest: &str) -> usize {
    let marks = rest[1..].chars().take_while(|c| *c == '#').count();
    if !rest[1 + marks..].starts_with('"') {
        return 1;
    }
    let closing = format!("\"{}", "#".repeat(marks));
    let start = marks + 2;
    rest[start..].find(&closing).map_or(rest.len(), |end| start + end + closing.len())
}

/// The length of the character that something starts with; of a lifetime, its mark.
fn character_length(rest: &str) -> usize {
    let mut all = rest.char_indices().skip(1);
    match (all.next(), all.next()) {
        (Some((_, '\\')), Some(_)) => rest[3..].find('\'').map_or(rest.len(), |end| end + 4),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(texts: &[(&str, &str)]) -> Vec<Vec<String>> {
        let texts = texts.iter().map(|(path, text)| (module_of(path), (*text).to_owned())).collect();
        let modules = Modules::read(&texts);
        let named = |circle: &Vec<&Module>| circle.iter().map(|module| module.join("::")).collect();
        modules.circles().iter().map(named).collect()
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        let all = circles(&[
            ("lib.rs", "mod a; mod b; mod c; pub use a::{One, Two as Other};"),
            ("a.rs", "use crate::{b::Thing, c};"),
            ("b/mod.rs", "mod inner; pub(crate) use inner::Thing;"),
            ("b/inner.rs", "use std::fmt; fn made() -> crate::One { crate::One }"),
            ("c.rs", "// use crate::a::One;\nconst TEXT: &str = \"crate::a::One\";"),
        ]);
        assert_eq!(all, [["a", "b::inner"]], "re-exports are seen through, comments and texts are not read");
    }

    #[test]
    fn what_is_used_of_a_module_counts_and_not_its_import() {
        let all = circles(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b as other; fn f() { other::made() }"),
            ("b/mod.rs", "mod inner; mod idle; pub(crate) use inner::made; fn g() { inner::h() }"),
            ("b/inner.rs", "use super::super::a; pub fn made() { a::f(); super::g() }"),
            ("b/idle.rs", "use crate::{a, c};"),
            ("c.rs", "use crate::b::{idle::Thing, *};"),
        ]);
        assert_eq!(all, [["a", "b", "b::inner"]]);
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let all = circles(&[
            ("a.rs", "use b::Thing;\nuse super::b::{self, deep::{Er, self}};"),
            ("b.rs", "use serde::a;\n#[cfg(test)]\nmod tests { use crate::a; }"),
            ("b/deep.rs", "fn f<'a>(c: char) -> bool { c == '\"' || c == '\\'' } use super::super::a::F;"),
        ]);
        assert_eq!(all, [["a", "b::deep"]]);
    }
}
