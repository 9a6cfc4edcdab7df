//! The chart's time axis. Stories have hours in which nothing happens and milliseconds in which everything does, so
//! the axis is not to scale: each stretch between two happenings gets a column, and the rest is shared by the
//! logarithm of their lengths.

use crate::names::clock;
use nodefold_core::time::Time;

/// Where moments are.
pub struct Axis {
    /// Moments at which something happened, each with its column.
    stops: Vec<(Time, usize)>,
    width: usize,
}

impl Axis {
    /// An axis of so many columns through these moments (any order, any number of times).
    pub fn through(mut moments: Vec<Time>, width: usize) -> Axis {
        moments.sort();
        moments.dedup();
        let width = width.max(1);
        let weights: Vec<f64> = moments.windows(2).map(|pair| weight(pair[0], pair[1])).collect();
        let total: f64 = weights.iter().sum();
        // A column for each stretch, if there are enough.
        let own = if weights.len() < width { 1.0 } else { 0.0 };
        let shared = (width - 1) as f64 - own * weights.len() as f64;
        let mut stops = Vec::with_capacity(moments.len());
        let mut at: f64 = 0.0;
        for (i, moment) in moments.iter().enumerate() {
            stops.push((*moment, (at.round() as usize).min(width - 1)));
            if let Some(weight) = weights.get(i) {
                at += own + shared * weight / total;
            }
        }
        Axis { stops, width }
    }

    /// The column of a moment: that of the last stop at or before it.
    pub fn column(&self, at: Time) -> usize {
        match self.stops.partition_point(|(moment, _)| *moment <= at) {
            0 => 0,
            n => self.stops[n - 1].1,
        }
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The labels and the line below them, with a tick under the first character of each label.
    pub fn draw(&self, beginning: Time) -> (String, String) {
        let mut labels = String::new();
        let mut line: Vec<char> = vec!['─'; self.width];
        // The end says how long it all took, so its place is kept free.
        let last = self.stops.last().map(|(at, column)| (clock(*at, beginning), *column));
        let end = last.as_ref().map(|(label, column)| (*column + 1).saturating_sub(label.len()));
        let mut free = 0;
        for (moment, column) in &self.stops {
            let label = clock(*moment, beginning);
            if *column < free || end.is_some_and(|end| column + label.len() + 1 > end) {
                continue;
            }
            labels.push_str(&" ".repeat(column - labels.len()));
            labels.push_str(&label);
            line[*column] = '┴';
            free = column + label.len() + 1;
        }
        if let (Some((label, column)), Some(end)) = (last, end)
            && end >= labels.len()
        {
            labels.push_str(&" ".repeat(end - labels.len()));
            labels.push_str(&label);
            line[column] = '┘';
        }
        (labels, line.into_iter().collect())
    }
}

fn weight(from: Time, to: Time) -> f64 {
    let millis = to.since(from).0 as f64 / 1e6;
    (1.0 + millis).log2() + 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodefold_core::time::Nanos;

    fn after(millis: u64) -> Time {
        Time(1_000_000_000).after(Nanos::millis(millis))
    }

    #[test]
    fn every_stretch_has_a_column_while_there_are_enough() {
        let moments = [0, 1, 2, 3, 3_600_000, 3_600_001].map(after).to_vec();
        let axis = Axis::through(moments.clone(), 40);
        let columns: Vec<usize> = moments.iter().map(|at| axis.column(*at)).collect();
        assert!(columns.windows(2).all(|pair| pair[0] < pair[1]), "{columns:?}");
        assert_eq!((columns[0], columns[5]), (0, 39));
    }

    #[test]
    fn more_moments_than_columns_share_them_in_order() {
        let moments: Vec<Time> = (0..500).map(after).collect();
        let axis = Axis::through(moments.clone(), 20);
        let columns: Vec<usize> = moments.iter().map(|at| axis.column(*at)).collect();
        assert!(columns.is_sorted() && columns[499] == 19 && columns[0] == 0, "{columns:?}");
    }

    #[test]
    fn labels_do_not_run_into_each_other_and_the_end_is_told() {
        let moments: Vec<Time> = (0..30).map(|i| after(i * 777)).collect();
        let (labels, line) = Axis::through(moments, 60).draw(after(0));
        assert!(labels.starts_with("0.000s ") && labels.ends_with(" 22.533s"), "{labels:?}");
        assert_eq!(labels.len(), 60);
        assert_eq!(line.chars().filter(|c| *c != '─').count(), labels.split_whitespace().count());
    }

    #[test]
    fn one_moment_is_an_axis_too() {
        let axis = Axis::through(vec![after(5)], 10);
        assert_eq!(axis.column(after(99)), 0);
        assert_eq!(Axis::through(Vec::new(), 10).column(after(0)), 0);
    }
}
