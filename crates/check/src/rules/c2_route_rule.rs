//! # A rule for routes that Traefik cannot read
//!
//! The API server takes any text in `match` of an IngressRoute. Traefik reads it as an expression of
//! functions; where a parenthesis or a backtick is missing, or a function is called as it was in another
//! version, it leaves the route out and says so in its log alone. Its third version takes one text for each
//! function, and calls some of them otherwise.
//!
//! People see: `404 page not found`, `error while adding rule Host(…): parsing rule … unsupported function:
//! HeadersRegexp`, `unexpected number of parameters; got 2, expected one of [1]`.
//!
//! ## Bad
//! ```yaml
//! match: Host(`shop.example.com`) && HeadersRegexp(`Authorization`, `^Bearer .+`)   # Traefik 3
//! ```
//! ## Good
//! ```yaml
//! match: Host(`shop.example.com`) && HeaderRegexp(`Authorization`, `^Bearer .+`)
//! ```
//! ## When to suppress
//! Where another program than Traefik reads the rule.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::Object;

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        images::Image,
        placeholders,
        pods::{self, list, text},
        traefik_rules::{self, Matcher},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-route-rule",
    incident: "C2",
    severity: Severity::Warning,
    title: "a rule for routes that Traefik cannot read",
    page: page!("c2_route_rule.rs"),
    check,
};

/// The functions of routes of HTTP: their names, the versions of Traefik that have them, and how many texts
/// the third takes.
const HTTP: [(&str, [bool; 2], usize); 14] = [
    ("Host", [true, true], 1),
    ("HostRegexp", [true, true], 1),
    ("HostHeader", [true, false], 1),
    ("ClientIP", [true, true], 1),
    ("Method", [true, true], 1),
    ("Path", [true, true], 1),
    ("PathPrefix", [true, true], 1),
    ("PathRegexp", [false, true], 1),
    ("Headers", [true, false], 2),
    ("HeadersRegexp", [true, false], 2),
    ("Header", [false, true], 2),
    ("HeaderRegexp", [false, true], 2),
    ("Query", [true, true], 2),
    ("QueryRegexp", [false, true], 2),
];
/// Those of routes of TCP.
const TCP: [&str; 4] = ["HostSNI", "HostSNIRegexp", "ClientIP", "ALPN"];

fn check(context: &Context<'_>, report: &mut Report) {
    let version = version(context);
    let mut once = Once::default();
    for object in &context.survey.objects {
        let is_of_traefik = matches!(object.key.group.as_str(), "traefik.io" | "traefik.containo.us");
        let is_http = match object.key.kind.as_str() {
            "IngressRoute" if is_of_traefik => true,
            "IngressRouteTCP" if is_of_traefik => false,
            _ => continue,
        };
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        for (at, route) in list(&object.value()["spec"], "routes").iter().enumerate() {
            let rule = text(route, "match");
            let is_filled_in = placeholders::is_in(rule) && !rule.contains('`');
            if rule.is_empty() || is_filled_in || rule.contains("{{") {
                continue;
            }
            let version = version.filter(|_| text(route, "syntax").is_empty());
            let Some(fault) = fault(rule, is_http, version) else { continue };
            let diagnostic = RULE
                .diagnostic(format!("{} has a rule that Traefik cannot read: {fault}", object.title()))
                .at(
                    context.survey.span(object, &keys(&["spec", "routes"]).index(at).key("match")),
                    "this rule",
                )
                .because("the API server takes any text; Traefik leaves the route out, and answers 404");
            once.add(rule, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// What is wrong with a rule.
fn fault(rule: &str, is_http: bool, version: Option<u64>) -> Option<String> {
    let functions = match traefik_rules::parse(rule) {
        Ok(functions) => functions,
        Err(error) => return Some(error),
    };
    functions.iter().find_map(|function| match is_http {
        true => http_fault(function, version),
        false => (!TCP.contains(&function.name)).then(|| unsupported(function.name, TCP.into_iter())),
    })
}

fn http_fault(function: &Matcher<'_>, version: Option<u64>) -> Option<String> {
    let &Matcher { name, arguments } = function;
    let of_version = |has: [bool; 2]| match version {
        Some(2) => has[0],
        Some(3) => has[1],
        _ => has[0] || has[1],
    };
    let known = HTTP.iter().find(|(known, has, _)| *known == name && of_version(*has));
    let Some((.., wanted)) = known else {
        return Some(unsupported(name, HTTP.iter().filter(|it| of_version(it.1)).map(|it| it.0)));
    };
    if arguments == 0 {
        return Some(format!("{name} is called without a text"));
    }
    (version == Some(3) && arguments > *wanted).then(|| {
        format!("unexpected number of parameters of {name}; got {arguments}, expected one of [{wanted}]")
    })
}

fn unsupported<'a>(name: &'a str, known: impl Iterator<Item = &'a str>) -> String {
    match similar_names::nearest_slip(name, known) {
        Some(meant) => format!("unsupported function: {name}; perhaps {meant} is meant"),
        None => format!("unsupported function: {name}"),
    }
}

/// The version of the Traefik that the repository installs: of its chart, or of its image; none if several
/// differ or nothing says it.
fn version(context: &Context<'_>) -> Option<u64> {
    let charts = context.chart_uses().iter().filter(|used| used.chart == "traefik");
    // The chart has its own numbers: from its 28th on it brings the third version.
    let of_charts = charts.map(|used| {
        let major: Option<u64> =
            used.version.trim_start_matches(['v', '^', '~', '=']).split('.').next()?.parse().ok();
        let is_old_syntax = used.values.iter().any(|it| it.to_string().contains("defaultRuleSyntax"));
        major.filter(|_| !is_old_syntax).map(|major| if major >= 28 { 3 } else { 2 })
    });
    let of_images = context.survey.objects.iter().flat_map(of_images);
    let all: Vec<Option<u64>> = of_charts.chain(of_images).collect();
    let first = *all.first()?;
    all.iter().all(|it| *it == first).then_some(first).flatten()
}

/// The versions of Traefik among the containers of an object.
fn of_images(object: &Object) -> Vec<Option<u64>> {
    let Some(pod) = pods::pod_of(object) else { return Vec::new() };
    let of_container = |name: &str| {
        let image = Image::parse(name).filter(|it| it.path == "traefik" || it.path.ends_with("/traefik"))?;
        Some(image.tag?.trim_start_matches('v').split(['.', '-']).next()?.parse().ok())
    };
    let is_old = |args: &str| args.contains("defaultRuleSyntax");
    let containers: Vec<_> = pod.containers().collect();
    containers
        .iter()
        .filter_map(|it| {
            let version = of_container(it.image())?;
            Some(
                version
                    .filter(|_| !is_old(&it.value.get("args").map(ToString::to_string).unwrap_or_default())),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn functions_are_those_of_the_version() {
        let headers = "HeadersRegexp(`Authorization`, `^Bearer .+`)";
        assert!(fault(headers, true, Some(3)).is_some());
        assert!(fault(headers, true, Some(2)).is_none() && fault(headers, true, None).is_none());
        let two = "Host(`a.example.com`, `b.example.com`)";
        assert!(fault(two, true, Some(3)).is_some() && fault(two, true, None).is_none());
        assert!(fault("Hots(`a.example.com`)", true, None).is_some_and(|it| it.ends_with("Host is meant")));
        assert!(fault("HostSNI(`*`)", false, Some(3)).is_none());
        assert!(fault("Host(`a.example.com`)", false, Some(3)).is_some());
    }
}
