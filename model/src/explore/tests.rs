//! The engine on the specification's scopes: counts pinned, and the same whichever way they are found.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::scopes::Scope;
use super::*;
use crate::spec::shapes::SHAPES;

fn whole(scope: &Scope, options: Options) -> Report {
    breadth_first(scope, options, &mut |_| true).0
}

#[test]
fn print_counts() {
    for shape in SHAPES {
        let begin = std::time::Instant::now();
        let report = whole(&Scope::new(shape, true), Options::default());
        println!("{}: {:?} {:?}", shape.name, report, begin.elapsed());
        if let Some(found) = &report.found {
            let beginning = Scope::new(shape, true);
            println!("   {:?}", choices_of(&beginning, &found.path));
            let mut world = beginning;
            for choice in choices_of(&beginning, &found.path) {
                let _ = world.take(&choice);
            }
            println!("   {:?}", world.state);
            if let Wrong::Livelock(cycle) = &found.what {
                println!("  cycle {:?}", choices_of(&world, cycle));
            }
        }
    }
}
