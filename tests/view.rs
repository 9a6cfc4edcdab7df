//! The views in a real Chromium: nothing is complained about, a click shows the evidence, search finds, hostile text stays text,
//! ten thousand entries draw; and the trace for Perfetto by its format's rules.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on fails; the frame time is for people"
)]

#[path = "view/browser.rs"]
mod browser;
#[path = "view/perfetto.rs"]
mod perfetto;

use browser::Browser;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn nodefold(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodefold"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program runs")
}

/// The files of a recording.
fn recording(name: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name);
    let mut files: Vec<String> = std::fs::read_dir(dir)
        .expect("a recording")
        .map(|e| e.expect("an entry").path().display().to_string())
        .collect();
    files.sort();
    files
}

/// A directory and the page that a command drew into it.
fn page(command: &[&str]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().expect("a directory");
    let page = dir.path().join("view.html");
    let mut args = command.to_vec();
    let shown = page.display().to_string();
    args.extend(["--html", &shown]);
    let ran = nodefold(&args);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    (dir, page)
}

fn page_of(files: &[String]) -> (TempDir, PathBuf) {
    let mut args = vec!["view"];
    args.extend(files.iter().map(String::as_str));
    page(&args)
}

#[test]
fn a_click_on_an_entry_shows_its_evidence() {
    let (_dir, page) = page_of(&recording("02-crashloop"));
    let mut browser = Browser::start(1440, 900, false);
    browser.open(&page);
    // An entry that a kubelet's log tells, as far from its neighbours as there is one.
    let at = browser.eval(
        "(() => { const { data, spot, rows, state } = nodefold; const box = document.getElementById('scroller').getBoundingClientRect();
           for (let i = 0; i < data.entries.length; i++) { const e = data.entries[i];
             if (e.at === undefined || e.quiet || !e.raw || e.who !== 'kubelet log') continue;
             const p = spot(i); if (!p || p.y > box.height - 20) continue;
             if (nodefold.hit(p.x, p.y)?.entry === i) return { i, x: box.left + state.gutter + p.x, y: box.top + p.y, entry: e, file: data.files[e.file].name }; }
         })()",
    );
    browser.click(at["x"].as_f64().expect("a spot"), at["y"].as_f64().expect("a spot"));
    let detail =
        browser.eval("document.getElementById('detail').innerText").as_str().expect("text").to_owned();
    let line = at["entry"]["line"].as_u64().expect("a line");
    assert!(detail.contains(&format!("kubelet.log.gz:{line}")), "{detail}");
    assert!(detail.contains("confidence") && detail.contains("kubelet log"), "{detail}");
    // The text is the line as the file has it.
    let raw = at["entry"]["raw"].as_str().expect("its text");
    let file = std::fs::File::open(at["file"].as_str().expect("a file")).expect("the recording");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut text).expect("gzip");
    let written = text.lines().nth(usize::try_from(line).expect("small") - 1).expect("that line");
    assert!(written.starts_with(raw.trim_end_matches('…')), "{raw}\n{written}");
    assert!(detail.contains(&raw[..40]), "{detail}");
    browser.assert_quiet();
}

#[test]
fn keys_go_to_findings_and_through_a_lane_and_search_finds() {
    let (_dir, page) = page(&["view", "tests/node-logs/05-secret-rename-busy-v16-wrapper.log"]);
    let mut browser = Browser::start(1280, 800, true);
    browser.open(&page);
    let found = browser.eval("nodefold.data.findings.length").as_u64().expect("a number");
    assert!(found >= 2, "this log has findings");
    assert_eq!(browser.eval("document.querySelectorAll('#findings .card').length"), found);
    browser.key("f");
    let kind = browser.eval("nodefold.data.findings[0].kind");
    let detail =
        browser.eval("document.getElementById('detail').innerText").as_str().expect("text").to_owned();
    assert!(detail.contains(kind.as_str().expect("a kind")) && detail.contains("That means"), "{detail}");
    // A click on a card goes to its lane and brings its proof into view.
    browser.eval("document.querySelectorAll('#findings .card')[1].click()");
    let seen = browser.eval(
        "(() => { const f = nodefold.data.findings[1]; const p = nodefold.spot(f.evidence[0]); const s = document.getElementById('scroller');
           return nodefold.state.lane === f.lane && p.x >= 0 && p.x <= nodefold.state.width && p.y >= s.scrollTop && p.y <= s.scrollTop + s.clientHeight; })()",
    );
    assert_eq!(seen, true);
    // From the keyboard: a lane, its first entry, the next one.
    browser.eval("document.getElementById('scroller').focus()");
    browser.key("Home");
    let first = browser.eval("nodefold.state.entry");
    assert!(first.is_u64(), "Home chooses an entry: {first}");
    assert_ne!(browser.eval("document.getElementById('live').textContent"), "", "and says it");
    let wide = browser.eval("nodefold.state.b - nodefold.state.a").as_f64().expect("a width");
    browser.key("+");
    assert!(
        browser.eval("nodefold.state.b - nodefold.state.a").as_f64().expect("a width") < wide,
        "plus zooms in"
    );
    browser.key("Escape");
    // Search.
    browser.key("/");
    assert_eq!(browser.eval("document.activeElement.id"), "query");
    browser.call("Input.insertText", serde_json::json!({"text": "default-token-8gqp2"}));
    browser.until("document.getElementById('matches').textContent.includes('match')");
    let rows = browser.eval("[...document.querySelectorAll('#entries .row')].map(r => r.innerText)");
    assert!(!rows.as_array().expect("rows").is_empty());
    let all = browser.eval("nodefold.state.matches.every(i => JSON.stringify(nodefold.data.entries[i]).includes('default-token-8gqp2'))");
    assert_eq!(all, true, "what is listed matches");
    let missed = browser.eval("nodefold.data.entries.filter((e, i) => (e.text + e.raw).includes('default-token-8gqp2') && !nodefold.state.matches.includes(i)).length");
    assert_eq!(missed, 0, "what matches is listed");
    browser.eval("nodefold.search('no such thing')");
    assert_eq!(browser.eval("document.getElementById('empty').hidden"), false, "an empty picture says so");
    browser.assert_quiet();
}

#[test]
fn hostile_text_stays_text() {
    let dir = TempDir::new().expect("a directory");
    let log = dir.path().join("</script><img src=x onerror=alert(1)>.log");
    std::fs::create_dir_all(log.parent().expect("a parent")).expect("made");
    let hostile =
        "</script><script>window.pwned=1</script><img src=x onerror=\\\"window.pwned=2\\\"><!--\u{2028}";
    let mut text = String::new();
    for n in 0..3 {
        let _ = writeln!(
            text,
            r#"I0316 04:31:2{n}.080604     202 kubelet.go:2474] "SyncLoop ADD" source="{hostile}" pods=["{hostile}/app-{n}"]"#
        );
    }
    let _ = writeln!(text, r#"E0316 04:31:29.1     202 x.go:1] x"#);
    let _ = writeln!(
        text,
        r#"E0316 04:31:29.080604     202 nestedpendingoperations.go:348] Operation for "{{volumeName:kubernetes.io/secret/a5f5f6fa-b968-4d32-395c-641f95a3f7a8-{hostile} podName:a5f5f6fa-b968-4d32-395c-641f95a3f7a8 nodeName:}}" failed. No retries permitted until 2025-03-16 04:31:30. Error: MountVolume.SetUp failed for volume "{hostile}" (UniqueName: "kubernetes.io/secret/a5f5f6fa-b968-4d32-395c-641f95a3f7a8-x") pod "{hostile}" (UID: "a5f5f6fa-b968-4d32-395c-641f95a3f7a8") : {hostile}"#
    );
    // A name with a slash is no file's name: the directory is hostile too.
    std::fs::create_dir_all(log.parent().expect("a parent")).expect("made");
    std::fs::write(&log, text).expect("written");
    let (_page_dir, page) = page_of(&[log.display().to_string()]);
    let written = std::fs::read_to_string(&page).expect("the page");
    assert_eq!(written.matches("</script>").count(), 2, "the data's block and the script's, and no more");
    assert!(!written.contains("<img"), "no markup of the evidence");
    let mut browser = Browser::start(1200, 800, false);
    browser.open(&page);
    let entries = browser.eval("nodefold.data.entries.length").as_u64().expect("a number");
    assert!(entries >= 3, "the hostile lines are in the picture: {entries}");
    // All that can show text shows it.
    browser.eval("for (let i = 0; i < nodefold.data.entries.length; i++) nodefold.chooseEntry(i)");
    browser.eval("for (let i = 0; i < nodefold.data.findings.length; i++) nodefold.chooseFinding(i)");
    browser.eval("nodefold.search('pwned')");
    for tab in ["findings", "entries", "about"] {
        browser.eval(&format!("document.getElementById('tab-{tab}').click()"));
    }
    assert_eq!(
        browser.eval("window.pwned === undefined && document.querySelectorAll('img').length === 0"),
        true
    );
    assert_eq!(browser.eval("document.querySelectorAll('script').length"), 2);
    assert!(
        browser.eval("document.body.textContent").as_str().expect("text").contains("<img src=x"),
        "it is shown as what it is"
    );
    browser.assert_quiet();
    // And if markup got in after all, the page's policy would stop its script.
    browser.eval("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.pwned = 3'}))");
    assert_eq!(browser.eval("window.pwned === undefined"), true);
}

#[test]
fn a_run_draws_its_stages_from_desired_to_actual() {
    let (_dir, page) = page(&["run", "examples/workspace-swap.yaml", "-q"]);
    let mut browser = Browser::start(900, 700, false);
    browser.open(&page);
    assert_eq!(browser.eval("nodefold.data.findings.length"), 0);
    // The volume that a request adds is wanted before it is allocated, then asked for, then there.
    let order = browser.eval(
        "(() => { const lane = nodefold.data.lanes.find(l => l.name === 'scratch-2'); const first = (s, w) => lane.spans.find(x => x.stage === s && (!w || x.phase === w)).from;
           return [first('desired'), first('allocated'), first('actuated'), first('actual', 'up')]; })()",
    );
    let order: Vec<i64> =
        order.as_array().expect("four").iter().map(|v| v.as_i64().expect("a time")).collect();
    assert!(order.len() == 4 && order.is_sorted() && order[3] > order[2], "{order:?}");
    // A command tells which fact made it due, and by which rule.
    let told = browser.eval(
        "(() => { const i = nodefold.data.entries.findIndex(e => e.who === 'command' && e.text.includes('stop')); nodefold.chooseEntry(i); return document.getElementById('detail').innerText; })()",
    );
    let told = told.as_str().expect("text");
    assert!(told.contains("derived from") && told.contains("the rule"), "{told}");
    browser.assert_quiet();
}

#[test]
fn ten_thousand_entries_draw() {
    let (_dir, page) = page_of(&recording("17-churn-4-minutes"));
    let mut browser = Browser::start(1440, 900, false);
    browser.open(&page);
    let entries = browser.eval("nodefold.data.entries.length").as_u64().expect("a number");
    assert!(entries > 10_000, "{entries}");
    // Everything unfolded, all of the time in view; then frame after frame, zooming in.
    let measured = browser.eval(
        "(async () => { const { state, look, whole, frames, drawAll } = nodefold; state.folded.clear(); window.dispatchEvent(new Event('resize')); nodefold.search('');
           drawAll(); const lit = (() => { const k = document.getElementById('lanes'); const d = k.getContext('2d').getImageData(state.gutter, 0, k.width - state.gutter, k.height).data; const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]); return seen.size; })();
           frames.length = 0; const [a, b] = whole(); const times = [];
           for (let i = 0; i < 120; i++) { const w = (b - a) * 0.97 ** i; look(a + (b - a) * 0.3 - w * 0.3, a + (b - a) * 0.3 + w * 0.7); document.getElementById('scroller').scrollTop = i * 97;
             const began = performance.now(); drawAll(); times.push(performance.now() - began); }
           times.sort((x, y) => x - y); const shown = document.querySelectorAll('#labels .label').length;
           return { median: times[60], p95: times[114], shown, colours: lit, rows: nodefold.rows().length }; })()",
    );
    println!("frame time over 120 frames of {entries} entries: {measured}");
    assert!(measured["rows"].as_u64().expect("rows") > 500, "{measured}");
    assert!(measured["colours"].as_u64().expect("colours") > 20, "something is drawn: {measured}");
    // Only what is in view has elements.
    assert!(measured["shown"].as_u64().expect("labels") < 40, "{measured}");
    assert!(browser.eval("document.querySelectorAll('#entries .row').length").as_u64().expect("rows") < 60);
    browser.assert_quiet();
}

#[test]
fn light_and_dark_are_readable() {
    let (_dir, page) = page(&["view", "tests/node-logs/05-secret-rename-busy-v16-wrapper.log"]);
    for dark in [false, true] {
        let mut browser = Browser::start(1280, 800, dark);
        browser.open(&page);
        // WCAG AA: text has 4.5 to 1 on what is behind it.
        let weak = contrasts(&mut browser);
        assert!(weak.is_empty(), "dark: {dark}: {weak:#?}");
        let before = browser.eval("getComputedStyle(document.body).backgroundColor");
        browser.eval("document.getElementById('theme').click()");
        assert_ne!(
            browser.eval("getComputedStyle(document.body).backgroundColor"),
            before,
            "the switch switches"
        );
        let weak = contrasts(&mut browser);
        assert!(weak.is_empty(), "switched from dark: {dark}: {weak:#?}");
        browser.assert_quiet();
    }
}

/// Pairs of colours that are too near each other for text.
fn contrasts(browser: &mut Browser) -> Vec<Value> {
    let weak = browser.eval(
        "(() => { const probe = document.createElement('span'); document.body.append(probe);
           const rgb = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number); };
           const lum = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
           const ratio = (a, b) => { const [x, y] = [lum(rgb(a)), lum(rgb(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
           const pairs = [];
           for (const back of ['bg', 'surface', 'sunken', 'raised', 'accent-soft']) for (const ink of ['ink', 'ink-2']) pairs.push([ink, back]);
           for (const back of ['bg', 'surface', 'bad-soft']) pairs.push(['bad', back]);
           pairs.push(['good', 'good-soft'], ['accent', 'surface'], ['accent', 'sunken'], ['surface', 'bad'], ['ink', 'match']);
           for (const p of ['up', 'coming', 'going', 'failing', 'unknown', 'waiting', 'over']) pairs.push([`${p}-ink`, p]);
           const weak = pairs.map(([a, b]) => ({ ink: a, on: b, ratio: ratio(a, b) })).filter((p) => p.ratio < 4.5);
           probe.remove(); return weak; })()",
    );
    weak.as_array().expect("a list").clone()
}

#[test]
fn a_narrow_window_loses_nothing() {
    let (_dir, page) = page_of(&recording("02-crashloop"));
    let mut browser = Browser::start(420, 800, true);
    browser.open(&page);
    let cut = browser.eval(
        "[...document.querySelectorAll('button, input, #detail, #panel, #lanes')].filter(e => e.offsetParent !== null).map(e => [e.id || e.className, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0 && (r.left < -1 || r.right > innerWidth + 1)).map(([n]) => n)",
    );
    assert_eq!(cut, serde_json::json!([]), "nothing reaches out of the window");
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    browser.assert_quiet();
}

#[test]
fn what_can_t_be_drawn_is_refused() {
    let dir = TempDir::new().expect("a directory");
    let noise = dir.path().join("noise");
    std::fs::write(&noise, "nothing\nto\nsee\n").expect("written");
    let page = dir.path().join("x.html").display().to_string();
    let ran = nodefold(&["view", &noise.display().to_string(), "--html", &page]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("nothing recognisable"));
    assert!(!Path::new(&page).exists());
    let ran = nodefold(&["view", "tests/node-logs/05-secret-rename-busy-v16-wrapper.log"]);
    assert_eq!(ran.status.code(), Some(2), "a form must be chosen");
}
