//! Prints the trace of files: for development.
use std::path::PathBuf;
fn main() {
    let paths: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let options = nodefold_replay::Options {
        year: None,
        now: nodefold_replay::Moment(1796086800 * nodefold_replay::SECOND),
    };
    let trace = nodefold_replay::read_files(&paths, &options, &mut |_| {}).unwrap();
    for e in &trace.entries {
        let pod = e
            .pod
            .map(|p| format!("{} [{}]", trace.pod_name(p), trace.pod(p).uid.as_deref().unwrap_or("-")))
            .unwrap_or_default();
        println!(
            "{} {}:{} {} | {} | {:?}{}",
            trace.clock(e),
            e.file,
            e.line,
            pod,
            trace.describe(e),
            e.confidence,
            if e.cut { " CUT" } else { "" }
        );
    }
    println!("pods {} volumes {}", trace.pod_count(), trace.volume_count());
    println!("{:?}", trace.notes);
    let report = nodefold_replay::judge(&trace);
    for f in &report.findings {
        println!(
            "FINDING {} {} {:?} {} {:?} {:?} res={}",
            f.kind.as_str(),
            nodefold_replay::rfc3339(f.at),
            f.pod.map(|p| trace.pod_name(p)),
            f.explanation,
            f.confidence,
            f.evidence.iter().map(|i| (trace.entries[*i].file, trace.entries[*i].line)).collect::<Vec<_>>(),
            f.resolved
        );
    }
    for n in &report.notes {
        println!("NOTE {} {}", n.kind, n.text);
    }
}
