//! The production core's state as a document for other versions: JSON, packed with LZ4. What is in it is
//! `nodefold_core::portable`'s.

use nodefold_core::Node;
use nodefold_core::portable::{Document, Head};

/// LZ4 never makes less than this of its input, so no length is believed beyond it.
const MOST_PACKED: usize = 255;
/// Bytes before the packed ones: how long they are unpacked.
const PREFIX: usize = 8;

/// The document as text.
pub fn to_json(node: &Node) -> String {
    match serde_json::to_string_pretty(&node.to_portable()) {
        Ok(text) => text,
        // All its keys are strings and all its numbers integers: serde_json has no reason to refuse.
        Err(error) => panic!("a state can always be written as JSON: {error}"),
    }
}

/// A node from the document's text.
pub fn from_json(text: &[u8]) -> Result<Node, String> {
    let head: Head = serde_json::from_slice(text).map_err(|e| format!("it is no such document: {e}"))?;
    head.check().map_err(|e| e.to_string())?;
    let document: Document = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    Node::from_portable(document).map_err(|e| e.to_string())
}

pub(crate) fn pack(node: &Node) -> Vec<u8> {
    let text = match serde_json::to_vec(&node.to_portable()) {
        Ok(text) => text,
        Err(error) => panic!("a state can always be written as JSON: {error}"),
    };
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(&lz4_flex::block::compress(&text));
    out
}

pub(crate) fn unpack(packed: &[u8]) -> Result<Node, String> {
    let short = || "it is cut short".to_owned();
    let (length, packed) = packed.split_first_chunk::<PREFIX>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|e| e.to_string())?;
    if length / MOST_PACKED > packed.len() {
        return Err(format!("{} bytes can't unpack to {length}", packed.len()));
    }
    let text = lz4_flex::block::decompress(packed, length).map_err(|e| e.to_string())?;
    from_json(&text)
}
