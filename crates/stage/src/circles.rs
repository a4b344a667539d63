//! Which nodes of a graph reach each other: its strongly connected components (Kosaraju's algorithm, without
//! recursion, as the graph may be one long chain).

use std::collections::BTreeSet;

/// The component of each node, and how many nodes each component has. `below` are the edges of each node.
pub(crate) struct Components {
    pub(crate) of: Vec<usize>,
    sizes: Vec<usize>,
}

impl Components {
    pub(crate) fn new(below: &[BTreeSet<usize>]) -> Self {
        let above = reversed(below);
        let (mut of, mut sizes) = (vec![usize::MAX; below.len()], Vec::new());
        for start in finished(below).into_iter().rev() {
            if of[start] != usize::MAX {
                continue;
            }
            let component = sizes.len();
            let (mut open, mut size) = (vec![start], 0);
            of[start] = component;
            while let Some(at) = open.pop() {
                size += 1;
                for &other in &above[at] {
                    if of[other] == usize::MAX {
                        of[other] = component;
                        open.push(other);
                    }
                }
            }
            sizes.push(size);
        }
        Self { of, sizes }
    }

    /// Whether a node reaches itself over others.
    pub(crate) fn is_in_circle(&self, at: usize) -> bool {
        self.sizes[self.of[at]] > 1
    }
}

/// The edges the other way around.
pub(crate) fn reversed(below: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut above = vec![Vec::new(); below.len()];
    for (at, others) in below.iter().enumerate() {
        others.iter().for_each(|other| above[*other].push(at));
    }
    above
}

/// The nodes in the order in which a search into the depth leaves them.
fn finished(below: &[BTreeSet<usize>]) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::with_capacity(below.len()), vec![false; below.len()]);
    for start in 0..below.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut path = vec![(start, below[start].iter())];
        while let Some((at, rest)) = path.last_mut() {
            match rest.next() {
                Some(&next) if !seen[next] => {
                    seen[next] = true;
                    path.push((next, below[next].iter()));
                }
                Some(_) => {}
                None => {
                    order.push(*at);
                    path.pop();
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[&[usize]]) -> Vec<BTreeSet<usize>> {
        edges.iter().map(|others| others.iter().copied().collect()).collect()
    }

    #[test]
    fn nodes_that_reach_each_other_are_one_component() {
        let components = Components::new(&graph(&[&[1], &[2], &[1, 3], &[], &[0]]));
        assert_eq!(components.of[1], components.of[2]);
        let apart: BTreeSet<usize> = components.of.iter().copied().collect();
        assert_eq!(apart.len(), 4);
        let in_circle: Vec<usize> = (0..5).filter(|at| components.is_in_circle(*at)).collect();
        assert_eq!(in_circle, [1, 2]);
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let chain: Vec<BTreeSet<usize>> = (1..=200_000).map(|next| [next % 200_000].into()).collect();
        assert!(Components::new(&chain).is_in_circle(7));
    }
}
