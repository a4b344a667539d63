//! What functions and operators cost, and how large their results are: CEL's own first, then those of
//! Kubernetes' libraries (apiserver, `pkg/cel/library/cost.go`).

use super::{
    Coster, Entry, LIST, Node, Step, TypeOrigin,
    size::{REGEX, Size, TEXT, scale},
    types::{self, Type},
};

/// What a call costs beside its arguments, and the size of its result.
type Call = (u64, Option<Size>);

/// What one check of an authorizer costs: two fit into an expression.
const AUTHORIZATION: u64 = 350_000;
/// What is built for every requirement of a selector.
const REQUIREMENT: f64 = 50.0;
/// The longest regular expression behind a named format, and the longest format.
const FORMAT_REGEX: f64 = 128.0;
const FORMAT: u64 = 64;

impl<'a> Coster<'a> {
    pub(super) fn function(&self, name: &str, target: Option<&Node<'a>>, args: &[Node<'a>]) -> Node<'a> {
        let types: Vec<&Type<'a>> = args.iter().map(|arg| &arg.ty).collect();
        let ty = types::of_call(name, target.map(|target| &target.ty), &types);
        let paid = args.iter().fold(0u64, |sum, arg| sum.saturating_add(arg.cost));
        match (name, args) {
            ("_&&_" | "_||_", _) => return Node::new(paid, ty),
            ("_?_:_", [condition, yes, no]) => {
                let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                let entry = yes.entry.zip(no.entry).map(|(yes, no)| yes.or(no));
                return Node::new(cost, ty).with_size(yes.size().or(no.size())).holding(entry);
            }
            ("_[_]", [of, _]) => return self.part(of, Node::new(paid.saturating_add(1), ty)),
            ("dyn", [inner]) => {
                let node = Node::new(paid.saturating_add(1), Type::Dyn).holding(inner.entry);
                return Node { size: inner.size, ..node };
            }
            _ => {}
        }
        let (cost, size) =
            self.library(name, target, args).or_else(|| plain(name, target, args)).unwrap_or((1, None));
        let mut node = Node::new(cost.saturating_add(paid), ty);
        node.size = size.or(node.size);
        if let ("_+_", [left, right]) = (name, args) {
            node.entry = left.entry.zip(right.entry).map(|(left, right)| left.or(right));
        }
        node
    }

    /// An item of a list, or a value of a map.
    fn part(&self, of: &Node<'a>, node: Node<'a>) -> Node<'a> {
        let place = self.step(of.place, Step::Parts);
        let placed = self.with_declared_size(Node { place, ..node });
        let own = of.entry.map(|entry: Entry| entry.value);
        Node { size: own.or(placed.size), ..placed }
    }

    /// The functions of Kubernetes' libraries; `None` for those that CEL itself accounts for.
    fn library(&self, name: &str, target: Option<&Node<'a>>, args: &[Node<'a>]) -> Option<Call> {
        let first = args.first().map(Node::size);
        let own = target.map(Node::size);
        let walk = |size: Size, times: f64| size.traversal_cost(times * TEXT);
        Some(match name {
            "check" => (AUTHORIZATION, None),
            "fieldSelector" | "labelSelector" if args.len() == 1 => (selector(first?), None),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => (self.each(target?), None),
            "url" | "jsonpatch.escapeKey" if args.len() == 1 => (walk(first?, 1.0), first),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => (walk(own?, 1.0), own),
            "replace" if args.len() >= 2 => (walk(own?, 2.0), Some(replaced(own?, first?, args[1].size()))),
            "split" => {
                let most = args.get(1).and_then(|limit| limit.number).map_or(own?.most, |most| most as u64);
                (walk(own?, 2.0), Some(Size::up_to(most)))
            }
            "join" => {
                let size = self.join_size(target?, first);
                (walk(size, 1.0), Some(size))
            }
            "find" | "findAll" => (regex(own?, first?), Some(Size::up_to(own?.most))),
            "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                (walk(first?, 1.0), None)
            }
            "ip" => (first.map_or(1, |size| walk(size, 1.0)), None),
            "ip.isCanonical" => (walk(first?, 2.0), None),
            "containsIP" | "containsCIDR" => {
                let base = if name == "containsIP" { 4 } else { 7 };
                let is_text = matches!(args.first()?.ty, Type::String | Type::Dyn);
                let parsed = if is_text { walk(first?, 1.0) } else { 0 };
                (parsed.saturating_add(base), None)
            }
            "validate" => (scale(walk(first?, 1.0), FORMAT_REGEX * REGEX), None),
            "_==_" if args.len() == 2 => (opaque_equality(&args[0], &args[1])?, None),
            name if NOMINAL.contains(&name) => (1, None),
            _ => return None,
        })
    }

    /// Comparing the items of a list one after the other, or going through a text.
    fn each(&self, target: &Node<'a>) -> u64 {
        let size = target.size();
        let Type::List(items) = &target.ty else { return size.traversal_cost(TEXT) };
        let each = match **items {
            Type::String | Type::Bytes => self.size_of_items(target).traversal_cost(TEXT).saturating_add(1),
            _ => 1,
        };
        size.most.saturating_mul(each)
    }

    /// How large the items of a list can be; those that an expression makes can have any size.
    fn size_of_items(&self, list: &Node<'a>) -> Size {
        match list.place {
            TypeOrigin::Nowhere => Size::UNKNOWN,
            place => match self.step(place, Step::Parts) {
                TypeOrigin::At(declared) => Size::up_to(declared.most),
                _ => Size::UNKNOWN,
            },
        }
    }

    fn join_size(&self, target: &Node<'a>, separator: Option<Size>) -> Size {
        let list = target.size();
        let items = match target.ty {
            Type::List(_) => list.times(self.size_of_items(target)),
            _ => Size::exactly(0),
        };
        let between = Size { least: list.least.saturating_sub(1), most: list.most.saturating_sub(1) };
        separator.map_or(items, |separator| items.plus(separator.times(between)))
    }
}

/// Functions that cost one, whatever they are called with.
const NOMINAL: [&str; 41] = [
    "serviceAccount",
    "path",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "allowed",
    "reason",
    "error",
    "errored",
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
    "hasValue",
    "value",
    "orValue",
];

/// Parsing a selector into requirements.
fn selector(length: Size) -> u64 {
    let requirements = scale(length.traversal_cost(0.5), REQUIREMENT);
    LIST.saturating_add(length.traversal_cost(TEXT)).saturating_add(requirements)
}

/// Matching a text, one longer so that an empty one costs too.
fn regex(text: Size, pattern: Size) -> u64 {
    text.plus(Size::exactly(1)).traversal_cost(TEXT).saturating_mul(pattern.traversal_cost(REGEX))
}

/// Values of the libraries that are compared at once.
fn opaque_equality(left: &Node<'_>, right: &Node<'_>) -> Option<u64> {
    match (&left.ty, &right.ty) {
        (Type::Opaque("format"), Type::Opaque("format")) => Some(scale(FORMAT, TEXT)),
        (Type::Opaque("url"), Type::Opaque("url")) => {
            Some(right.size.unwrap_or(Size::exactly(1)).or(Size::exactly(1)).traversal_cost(TEXT))
        }
        (Type::Opaque(left), Type::Opaque(right)) if left == right => Some(1),
        _ => None,
    }
}

/// The size of a text in which parts are replaced.
fn replaced(text: Size, part: Size, by: Size) -> Size {
    // Nothing, replaced, is found around every character.
    let (most, kept_at_most) = match part.least {
        0 => (text.most.saturating_add(1), text.most),
        least if by.most <= least => (0, text.most),
        least => (scale(text.most, 1.0 / least as f64), 0),
    };
    let (least, kept_at_least) = match part.most {
        0 => (text.least.saturating_add(1), text.least),
        most if most <= by.least => (0, text.least),
        most => (scale(text.least, 1.0 / most as f64), 0),
    };
    let kept = Size { least: kept_at_least, most: kept_at_most };
    Size { least, most }.times(by).plus(kept)
}

/// CEL's own functions, and those of its extensions.
fn plain(name: &str, target: Option<&Node<'_>>, args: &[Node<'_>]) -> Option<Call> {
    let own = target.map(Node::size);
    let first = args.first().map(Node::size);
    let walked = |size: Size| size.traversal_cost(TEXT);
    Some(match (name, args) {
        ("format", _) => (walked(own?), None),
        ("bytes", [text]) if matches!(text.ty, Type::String | Type::Dyn) => {
            let size = first?;
            (walked(size), Some(Size { most: size.most.saturating_mul(4), ..size }))
        }
        ("string", [bytes]) if matches!(bytes.ty, Type::Bytes | Type::Dyn) => {
            let size = first?;
            (walked(size).max(1), Some(Size { least: size.least / 4, ..size }))
        }
        ("strings.quote", [_]) => {
            let Size { least, most } = first?;
            let most = most.saturating_mul(2).saturating_add(2);
            (walked(first?), Some(Size { least: least.saturating_add(2), most }))
        }
        ("startsWith" | "endsWith", [_]) => (walked(first?), None),
        ("@in", [_, list]) => match list.ty {
            Type::Map(..) => (1, None),
            _ => (list.size().most.max(u64::from(matches!(list.ty, Type::Dyn))), None),
        },
        ("matches", [_]) => (regex(own?, first?), None),
        ("contains", [_]) => (walked(own?).saturating_mul(walked(first?)), None),
        ("_+_", [left, right]) => sum(left, right)?,
        ("_==_" | "_!=_", [left, right]) => (compared(left, right), None),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => match (&left.ty, &right.ty) {
            (Type::Dyn, Type::Dyn) => (compared(left, right).max(1), None),
            (Type::String | Type::Bytes, _) | (_, Type::String | Type::Bytes) => {
                (compared(left, right), None)
            }
            _ => (1, None),
        },
        _ => return super::extended::call(name, target, args),
    })
}

fn compared(left: &Node<'_>, right: &Node<'_>) -> u64 {
    scale(left.size().most.min(right.size().most), TEXT)
}

/// Texts are copied; lists are only joined. `None` for numbers.
fn sum(left: &Node<'_>, right: &Node<'_>) -> Option<Call> {
    let size = left.size().plus(right.size());
    match (&left.ty, &right.ty) {
        (Type::List(_), _) | (_, Type::List(_)) => Some((1, Some(size))),
        (Type::String | Type::Bytes, _) | (_, Type::String | Type::Bytes) => {
            Some((size.traversal_cost(TEXT), Some(size)))
        }
        (Type::Dyn, Type::Dyn) => Some((size.traversal_cost(TEXT).max(1), Some(size))),
        _ => None,
    }
}
