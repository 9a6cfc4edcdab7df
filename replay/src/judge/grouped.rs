//! Things by what they belong to, in one row of room: which entries are a pod's, which containers.

/// Things by number.
pub struct Grouped<T> {
    items: Vec<T>,
    /// Where each group ends.
    ends: Vec<usize>,
}

impl<T: Copy> Grouped<T> {
    /// Groups what belongs to one of so many; within a group the order stays.
    pub fn new(groups: usize, all: impl Iterator<Item = (usize, T)> + Clone) -> Grouped<T> {
        let mut ends = vec![0; groups];
        for (group, _) in all.clone() {
            ends[group] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            (begin, *end) = (begin + *end, begin);
        }
        // Until all is in its place, an end is where the next one goes.
        let mut items = Vec::new();
        if let Some((_, any)) = all.clone().next() {
            items = vec![any; begin];
        }
        for (group, item) in all {
            items[ends[group]] = item;
            ends[group] += 1;
        }
        Grouped { items, ends }
    }

    /// A group's things, in order.
    pub fn of(&self, group: usize) -> &[T] {
        let Some(end) = self.ends.get(group) else { return &[] };
        let from = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[from..*end]
    }

    /// All groups that have any, in order.
    pub fn groups(&self) -> impl Iterator<Item = (usize, &[T])> {
        (0..self.ends.len()).map(|group| (group, self.of(group))).filter(|(_, items)| !items.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_their_order() {
        let all = [(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd')];
        let grouped = Grouped::new(5, all.into_iter());
        assert_eq!(grouped.of(2), ['a', 'c']);
        assert!(grouped.of(1).is_empty() && grouped.of(4).is_empty() && grouped.of(9).is_empty());
        let found: Vec<usize> = grouped.groups().map(|(group, _)| group).collect();
        assert_eq!(found, [0, 2, 3]);
        assert!(Grouped::<char>::new(2, std::iter::empty()).of(1).is_empty());
    }
}
