//! `nodefold image`: what a node has in its store of images.

use crate::args::{self, ImageCommand};
use crate::ending::{Ending, Unusable};
use crate::linux::rootless;
use crate::out::Out;
use anyhow::Result;
use nodefold_agent::images::{Listed, Store};
use nodefold_agent::layout::Layout;
use serde_json::json;

/// Imports, lists or removes images.
pub fn image(args: &args::Image, out: &mut Out) -> Result<Ending> {
    let layout = Layout::at(std::path::absolute(&args.data)?);
    let _entered = rootless::look(&layout).map_err(|fault| Unusable::new(fault, ""))?;
    let store = Store::at(layout);
    match &args.what {
        ImageCommand::Import { path, name } => {
            let imported = store.import(path, name.as_deref()).map_err(|fault| {
                Unusable::new(fault, "it must be an OCI layout, an oci-archive or what docker save wrote")
            })?;
            for image in imported {
                out.line(format!("{}  {}  {}", image.names.join(", "), image.id, size(image.bytes)));
            }
        }
        ImageCommand::Ls { json } => {
            for image in store.list().map_err(|fault| Unusable::new(fault, ""))? {
                out.line(if *json { as_json(&image) } else { as_text(&image) });
            }
        }
        ImageCommand::Rm { image } => {
            let gone = store.remove(image).map_err(|fault| {
                Unusable::new(fault, "`nodefold image ls` shows what is there and who holds it")
            })?;
            out.line(if gone { format!("{image} is gone") } else { format!("the name {image} is gone") });
        }
    }
    Ok(Ending::Good)
}

fn as_text(image: &Listed) -> String {
    let names = if image.names.is_empty() { "(no name)".to_owned() } else { image.names.join(", ") };
    let mut text = format!("{names}  {}  {}", image.id, size(image.bytes));
    if !image.holders.is_empty() {
        text.push_str(&format!("  held by {}", image.holders.join(", ")));
    }
    text
}

fn as_json(image: &Listed) -> String {
    json!({"id": image.id, "names": image.names, "bytes": image.bytes, "holders": image.holders}).to_string()
}

fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
