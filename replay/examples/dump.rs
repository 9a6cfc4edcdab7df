//! Prints the trace of files: for development.
use std::path::PathBuf;
fn main() {
    let paths: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let options = nodefold_replay::Options { this_year: 2026, ..Default::default() };
    let trace = nodefold_replay::read_files(&paths, &options, &mut |_| {}).unwrap();
    for e in &trace.entries {
        let pod = e.pod.map(|p| format!("{} [{}]", trace.pod_name(p), trace.pod(p).uid.as_deref().unwrap_or("-"))).unwrap_or_default();
        println!("{} {}:{} {} | {} | {:?}{}", trace.clock(e), e.file, e.line, pod, trace.describe(e), e.confidence, if e.cut {" CUT"} else {""});
    }
    println!("pods {} volumes {}", trace.pod_count(), trace.volume_count());
    println!("{:#?} {:#?}", trace.files, trace.notes);
}
