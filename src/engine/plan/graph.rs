//! What depends on what: cycles, waves, and the longest chain.

use std::collections::{BTreeMap, BTreeSet};

/// A cycle among things that depend on each other, in the order of the dependencies; none where there is
/// none. What is not among them depends on nothing.
#[must_use]
pub fn cycle<I: Ord + Clone>(items: &[(I, Vec<I>)]) -> Option<Vec<I>> {
    let edges: BTreeMap<&I, &[I]> = items.iter().map(|(id, on)| (id, on.as_slice())).collect();
    let mut through: BTreeSet<&I> = BTreeSet::new();
    for start in edges.keys() {
        // Each entry of the path: an item and how many of its dependencies were followed.
        let mut path: Vec<(&I, usize)> = vec![(*start, 0)];
        let mut inside: BTreeSet<&I> = BTreeSet::from([*start]);
        while let Some((id, followed)) = path.last_mut() {
            let next = edges.get(*id).and_then(|on| on.get(*followed));
            *followed += 1;
            match next {
                None => {
                    through.insert(*id);
                    inside.remove(*id);
                    path.pop();
                }
                Some(next) if through.contains(next) => {}
                Some(next) if inside.contains(next) => {
                    let from = path.iter().position(|(id, _)| *id == next)?;
                    return Some(
                        path.split_off(from).into_iter().map(|(id, _)| id.clone()).collect(),
                    );
                }
                Some(next) => {
                    path.push((next, 0));
                    inside.insert(next);
                }
            }
        }
    }
    None
}

/// The order in which things that depend on each other can be delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// What each depends on and what depends on it, by their places in the list.
    on: Vec<Vec<usize>>,
    /// Each after what it depends on.
    order: Vec<usize>,
}

impl Graph {
    /// The graph of a list of which each names what it depends on; what is not in the list is delivered already. None
    /// where there is a cycle.
    #[must_use]
    pub fn of<I: Ord + Clone>(items: &[(I, Vec<I>)]) -> Option<Graph> {
        let places: BTreeMap<&I, usize> = items.iter().map(|(id, _)| id).zip(0..).collect();
        let on: Vec<Vec<usize>> = items
            .iter()
            .map(|(_, on)| {
                let on: BTreeSet<usize> =
                    on.iter().filter_map(|id| places.get(id).copied()).collect();
                on.into_iter().collect()
            })
            .collect();
        let mut waits: Vec<usize> = on.iter().map(Vec::len).collect();
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); on.len()];
        for (at, on) in on.iter().enumerate() {
            for before in on {
                behind[*before].push(at);
            }
        }
        let mut order: Vec<usize> = (0..on.len()).filter(|at| waits[*at] == 0).collect();
        let mut next = 0;
        while let Some(at) = order.get(next).copied() {
            next += 1;
            for after in &behind[at] {
                waits[*after] -= 1;
                if waits[*after] == 0 {
                    order.push(*after);
                }
            }
        }
        (order.len() == on.len()).then_some(Graph { on, order })
    }

    /// Groups of which each depends on earlier ones only, by places in the list. For people: nothing waits for a whole
    /// group.
    #[must_use]
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let mut depth = vec![0; self.on.len()];
        for at in &self.order {
            depth[*at] = self.on[*at].iter().map(|before| depth[*before] + 1).max().unwrap_or(0);
        }
        let count = depth.iter().max().map_or(0, |most| most + 1);
        let mut waves = vec![Vec::new(); count];
        for (at, depth) in depth.into_iter().enumerate() {
            waves[depth].push(at);
        }
        waves
    }

    /// For each, the weight of the heaviest chain that begins with it: itself and what depends on it.
    #[must_use]
    pub fn remaining<W>(&self, weight: impl Fn(usize) -> W) -> Vec<W>
    where
        W: Copy + Default + PartialOrd + std::ops::Add<Output = W>,
    {
        let mut remaining = vec![W::default(); self.on.len()];
        for at in self.order.iter().rev() {
            let mine = remaining[*at] + weight(*at);
            remaining[*at] = mine;
            for before in &self.on[*at] {
                if mine > remaining[*before] {
                    remaining[*before] = mine;
                }
            }
        }
        remaining
    }

    /// The heaviest chain, from its first to its last.
    #[must_use]
    pub fn critical_path<W>(&self, weight: impl Fn(usize) -> W) -> Vec<usize>
    where
        W: Copy + Default + PartialOrd + std::ops::Add<Output = W>,
    {
        let remaining = self.remaining(weight);
        let heaviest = |all: &mut dyn Iterator<Item = usize>| {
            // Of two that are equal the first of the list, so that the answer is the same each time.
            all.fold(None, |best: Option<usize>, at| match best {
                Some(best) if remaining[best] >= remaining[at] => Some(best),
                Some(_) | None => Some(at),
            })
        };
        let mut path = Vec::new();
        let first = |at: &usize| self.on[*at].is_empty();
        let mut next = heaviest(&mut (0..self.on.len()).filter(first));
        while let Some(at) = next {
            path.push(at);
            next = heaviest(&mut (0..self.on.len()).filter(|after| self.on[*after].contains(&at)));
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(edges: &[(u32, &[u32])]) -> Vec<(u32, Vec<u32>)> {
        edges.iter().map(|(id, on)| (*id, on.to_vec())).collect()
    }

    #[test]
    fn a_cycle_is_named() {
        assert_eq!(cycle(&of(&[])), None);
        assert_eq!(cycle(&of(&[(1, &[2, 3]), (2, &[3]), (3, &[9])])), None);
        assert_eq!(cycle(&of(&[(1, &[1])])), Some(vec![1]));
        let found = cycle(&of(&[(1, &[2]), (2, &[4, 3]), (3, &[4, 2]), (4, &[])]));
        assert_eq!(found, Some(vec![2, 3]));
        assert_eq!(Graph::of(&of(&[(1, &[2]), (2, &[1])])), None);
    }

    #[test]
    fn waves_and_the_longest_chain() {
        // A; B(A); C(A); D(B, C) and one that stands alone, longer than all of them together.
        let graph =
            Graph::of(&of(&[(1, &[]), (2, &[1]), (3, &[1]), (4, &[2, 3]), (5, &[8])])).unwrap();
        assert_eq!(graph.waves(), [vec![0, 4], vec![1, 2], vec![3]]);
        assert_eq!(graph.critical_path(|_| 1.0), [0, 1, 3]);
        assert_eq!(graph.critical_path(|at| if at == 2 { 2.0 } else { 1.0 }), [0, 2, 3]);
        assert_eq!(graph.critical_path(|at| if at == 4 { 9.0 } else { 1.0 }), [4]);
        assert_eq!(graph.remaining(|_| 1.0), [3.0, 2.0, 2.0, 1.0, 1.0]);
        let nothing = Graph::of(&of(&[])).unwrap();
        assert!(nothing.waves().is_empty() && nothing.critical_path(|_| 1.0).is_empty());
    }

    proptest! {
        #[test]
        fn without_a_cycle_something_can_always_begin(
            edges in prop::collection::vec(prop::collection::vec(0_usize..12, 0..4), 1..12)
        ) {
            let items: Vec<(usize, Vec<usize>)> = edges.iter().cloned().enumerate().collect();
            let found = cycle(&items);
            let graph = Graph::of(&items);
            prop_assert_eq!(found.is_some(), graph.is_none());
            if let Some(around) = found {
                for (n, from) in around.iter().enumerate() {
                    prop_assert!(items[*from].1.contains(&around[(n + 1) % around.len()]));
                }
            }
            if let Some(graph) = graph {
                let waves = graph.waves();
                prop_assert_eq!(waves.iter().map(Vec::len).sum::<usize>(), items.len());
                prop_assert_eq!(graph.critical_path(|_| 1.0).len(), waves.len());
            }
        }
    }
}
