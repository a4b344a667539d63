//! What a text may mean in memory.

use tiphys_value::{Budget, RenderLimits, value_bytes};
use tiphys_yaml::{
    ErrorKind, Profile, from_yaml, from_yaml_within, parse_documents_within, parse_first, to_value_within,
};

/// A long scalar behind an anchor, with that many aliases.
fn aliased(bytes: usize, aliases: usize) -> String {
    format!("s: &s \"{}\"\nd: [{}1]\n", "x".repeat(bytes), "*s,".repeat(aliases))
}

#[test]
fn aliases_of_a_long_scalar_count_its_bytes_each_time() {
    let error = from_yaml(&aliased(80_000, 38_000)).expect_err("means 3 GB");
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert_eq!(error.position().map(|at| at.line), Some(1), "the scalar that is repeated");
    assert!(
        error.to_string().contains("more than 96 MiB of memory (--limit-memory raises the limit)"),
        "{error}"
    );
    let value = from_yaml(&aliased(1_000, 100)).expect("means 100 kB");
    assert!(value_bytes(&value) > 100_000);
}

#[test]
fn dense_lists_and_maps_count_what_they_take() {
    for item in ["1,", "[],", "{a: 1},", "[1],", "a,"] {
        let text = format!("a: [{}1]", item.repeat(100_000));
        let budget = Budget::new(1 << 20);
        let error = from_yaml_within(&text, &budget).expect_err(item);
        assert_eq!(error.kind(), ErrorKind::Budget, "{item}");
        let budget = Budget::of_text();
        let value = from_yaml_within(&text, &budget).expect(item);
        assert!(
            budget.used_bytes() >= value_bytes(&value),
            "{item}: {} of {}",
            budget.used_bytes(),
            value_bytes(&value)
        );
    }
}

#[test]
fn a_budget_is_shared_by_all_who_are_given_it() {
    let budget = Budget::new(4 << 20);
    let text = "a: [1, 2, 3]\n---\n".repeat(1000);
    let documents = parse_documents_within(&text, Profile::Go2, &budget).expect("fits");
    let after = budget.used_bytes();
    assert!(after > 500_000, "{after}");
    let all = documents
        .iter()
        .try_for_each(|document| to_value_within(&document.root, Profile::Go2, &budget).map(drop));
    all.expect("fits");
    assert!(budget.used_bytes() > after);
    let more = (0..20).find_map(|_| parse_documents_within(&text, Profile::Go2, &budget).err());
    assert_eq!(more.map(|error| error.kind()), Some(ErrorKind::Budget), "it is used up");
}

#[test]
fn merges_count_the_keys_that_they_copy() {
    let keys: String = (0..50).map(|n| format!("{}{n}: 1, ", "k".repeat(900))).collect();
    let text = format!("a: &a {{{keys}}}\nb: [{}1]\n", "{<<: *a},".repeat(2000));
    let error = from_yaml_within(&text, &Budget::new(20 << 20)).expect_err("90 MB of keys");
    assert_eq!(error.kind(), ErrorKind::Budget);
}

#[test]
fn an_expanded_tree_counts_texts_that_copies_share() {
    let mut document = parse_first(&aliased(80_000, 38_000), Profile::Go3).expect("is YAML").expect("is one");
    assert_eq!(document.root.expand_aliases().expect_err("writes 3 GB").kind(), ErrorKind::Limit);
}

/// A definition as large ones are: some 60 kB of nested properties with descriptions.
fn definition(number: usize) -> String {
    let mut text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: d{number}.example.com\nspec:\n  properties:\n"
    );
    for field in 0..60 {
        text.push_str(&format!(
            "    field{field}:\n      description: |-\n        {}\n      type: object\n      properties:\n",
            "What it is for, in a few words. ".repeat(6)
        ));
        for inner in 0..10 {
            text.push_str(&format!("        inner{inner}:\n          description: how it is set and what it means\n          type: string\n"));
        }
    }
    text
}

#[test]
fn the_largest_bundles_in_use_take_a_small_part_of_the_budget() {
    let one = definition(0);
    assert!(one.len() > 60_000);
    let budget = Budget::of_document();
    from_yaml_within(&one, &budget).expect("fits");
    assert!(budget.used_bytes() < (RenderLimits::DEFAULT.memory / 8 * 3) / 50, "{}", budget.used_bytes());
    // All definitions of the largest operators together: 6 MB.
    let bundle: String = (0..80).map(|number| definition(number) + "---\n").collect();
    let budget = Budget::of_text();
    let documents = parse_documents_within(&bundle, Profile::Go2, &budget).expect("fits");
    let all = documents
        .iter()
        .try_for_each(|document| to_value_within(&document.root, Profile::Go2, &budget).map(drop));
    all.expect("fits");
    assert!(budget.used_bytes() < RenderLimits::DEFAULT.memory / 2, "{}", budget.used_bytes());
}
