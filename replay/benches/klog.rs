//! klog text to trace and verdict: how many bytes a second one core reads (ARCHITECTURE: at least 300 MB/s).

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nodefold_replay::{Moment, Options, SECOND, judge, read_texts};
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

/// A recording's log, as a default node writes it (V2 and below) and at V4.
fn log(name: &str) -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/recordings").join(name).join("kubelet.log.gz");
    let mut text = Vec::new();
    let file = File::open(path).expect("a recording");
    flate2::read::GzDecoder::new(file).read_to_end(&mut text).expect("gzip");
    text
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("klog");
    group.sample_size(20);
    for name in ["01-volumes-basic", "17-churn-4-minutes"] {
        let text = log(name);
        group.throughput(Throughput::Bytes(text.len() as u64));
        let options = Options { year: None, now: Moment(1_796_086_800 * SECOND) };
        group.bench_function(format!("{name}/trace"), |b| {
            b.iter(|| black_box(read_texts([("kubelet.log", &text[..])], &options)).entries.len());
        });
        group.bench_function(format!("{name}/verdict"), |b| {
            b.iter(|| {
                let trace = read_texts([("kubelet.log", &text[..])], &options);
                black_box(judge(&trace)).findings.len()
            });
        });
        // The floor: to find every line's end.
        group.bench_function(format!("{name}/newlines"), |b| {
            b.iter(|| black_box(memchr::memchr_iter(b'\n', &text).count()));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
