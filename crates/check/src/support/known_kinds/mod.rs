//! What is known of kinds whose definitions a repository does not hold: the fields and limits of widely
//! used operators' custom resources, so that a slip in them is found without the cluster.
//!
//! `data/custom-kinds` has a table for each group, made by `cargo xtask custom-kinds`; the module `table`
//! says how they are written.

mod core_types;
mod field_rules;
mod table;

use std::sync::LazyLock;

use tiphys_schema::StructuralSchema;
use tiphys_value::GroupVersionKind;

pub(crate) use field_rules::FieldRules;
use table::Table;

use super::packed_tables::PackedTables;

/// The groups, each with its table.
static TABLES: PackedTables =
    PackedTables::new(include_bytes!(concat!(env!("OUT_DIR"), "/custom-kinds.packed")));

/// What is known of a kind.
pub(crate) struct KnownKind {
    /// Its fields and their limits.
    pub schema: StructuralSchema,
    /// What its fields ask of each other.
    pub rules: FieldRules,
}

/// The groups and kinds of all tables, as they are written there.
static KINDS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let of_table = |&(group, text): &(&'static str, &'static str)| {
        entries(text).filter_map(move |entry| Some((group, entry.line.split_once(' ')?.1)))
    };
    TABLES.all().iter().flat_map(of_table).collect()
});

/// The kinds that one line of a table names.
struct Entry {
    /// `group/version,version Kind,Kind`
    line: &'static str,
    /// The text that begins with their fields.
    fields: &'static str,
}

/// What is known of a kind; nothing if it is not in a table.
pub(crate) fn find(gvk: &GroupVersionKind) -> Option<KnownKind> {
    let (_, table) = TABLES.all().iter().find(|(group, _)| *group == gvk.group)?;
    let entry = entries(table).find(|entry| is_of(entry.line, gvk))?;
    let (schema, rules) = Table::new(table).object(entry.fields);
    Some(KnownKind { schema: StructuralSchema::new(&schema), rules })
}

/// Whether the table has kinds of a group.
pub(crate) fn is_group(group: &str) -> bool {
    TABLES.all().iter().any(|(own, _)| *own == group)
}

/// The groups in which the table has a kind.
pub(crate) fn groups_of(kind: &str) -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter_map(move |(group, kinds)| kinds.split(',').any(|own| own == kind).then_some(*group))
}

/// The kinds of a table.
fn entries(table: &'static str) -> impl Iterator<Item = Entry> {
    let mut rest = table;
    std::iter::from_fn(move || {
        while let Some((line, fields)) = rest.split_once('\n') {
            rest = fields;
            if !line.starts_with([' ', '@', '~']) {
                return Some(Entry { line, fields });
            }
        }
        None
    })
}

/// Whether a line `group/version,version Kind,Kind` names a kind.
fn is_of(line: &str, gvk: &GroupVersionKind) -> bool {
    let Some((versions, kinds)) = line.split_once(' ') else { return false };
    let Some((group, versions)) = versions.split_once('/') else { return false };
    group == gvk.group
        && versions.split(',').any(|version| version == gvk.version)
        && kinds.split(',').any(|kind| kind == gvk.kind)
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    fn gvk(group: &str, version: &str, kind: &str) -> GroupVersionKind {
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    #[test]
    fn every_line_of_the_tables_is_read() {
        for (group, text) in TABLES.all() {
            let table = Table::new(text);
            assert_eq!(table.unread_lines(text), Vec::<&str>::new(), "{group}");
            for Entry { line, .. } in entries(text) {
                let (api, kinds) = line.split_once(' ').expect("an API and its kinds");
                let (own, versions) = api.split_once('/').expect("a group and its versions");
                assert_eq!(own, *group);
                for (version, kind) in
                    versions.split(',').flat_map(|version| kinds.split(',').map(move |kind| (version, kind)))
                {
                    assert!(find(&gvk(group, version, kind)).is_some(), "{line}");
                }
            }
        }
    }

    #[test]
    fn fields_and_types_are_told_apart() {
        let known = find(&gvk("external-secrets.io", "v1", "ExternalSecret")).expect("is known");
        let mut object = json!({"spec": {"secretStoreRef": {"name": 1, "vault": "x"}, "data": null}});
        assert_eq!(known.schema.prune(&mut object), ["spec.secretStoreRef.vault"]);
        let errors = known.schema.validate(&object, None);
        assert_eq!(errors.0.len(), 1, "{errors:?}");
        assert!(find(&gvk("external-secrets.io", "v1", "Secret")).is_none());
    }

    #[test]
    fn limits_are_the_definitions() {
        let known = find(&gvk("gateway.networking.k8s.io", "v1", "HTTPRoute")).expect("is known");
        let filter = json!({"type": "RequestRedirect", "urlRewrite": {"hostname": "shop.example.com"}});
        let object = json!({"spec": {
            "hostnames": ["Shop.example.com"],
            "rules": [{"backendRefs": [{"name": "shop", "port": 70000}], "filters": [filter]}],
        }});
        let mut faults: Vec<String> =
            known.schema.validate(&object, None).iter().map(ToString::to_string).collect();
        faults.extend(known.rules.validate(&object).iter().map(ToString::to_string));
        let has = |words: &str| faults.iter().any(|fault| fault.contains(words));
        assert!(has("spec.hostnames[0] in body should match '^"), "{faults:#?}");
        assert!(
            has("spec.rules[0].backendRefs[0].port in body should be less than or equal to 65535"),
            "{faults:#?}"
        );
        assert!(has("spec.rules[0].filters[0]: Invalid value: "), "{faults:#?}");
    }
}
