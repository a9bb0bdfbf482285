//! Trees inside trees, as gathered folders have them, laid out as one.

use avow_model::tree::{Entry, Tree};

use super::MaterialiseError;
use crate::blob::{BlobStore, read_record};

/// Limits against trees made to exhaust whoever expands them: a few records can name each other so that they
/// expand to any number of files.
const DEPTH: usize = 32;
const ENTRIES: usize = 10_000_000;

/// The same tree with every tree inside it replaced by that tree's entries. Each is checked by itself, so that
/// no link leads from one into its neighbour.
pub fn flatten(blobs: &dyn BlobStore, tree: &Tree) -> Result<Tree, MaterialiseError> {
    let mut flat = Tree::default();
    expand(blobs, tree, "", 0, &mut flat)?;
    Ok(flat)
}

fn expand(
    blobs: &dyn BlobStore,
    tree: &Tree,
    prefix: &str,
    depth: usize,
    flat: &mut Tree,
) -> Result<(), MaterialiseError> {
    if depth > DEPTH {
        return Err(MaterialiseError::TooLarge);
    }
    tree.check()?;
    if tree.entries.is_empty() && !prefix.is_empty() {
        flat.insert(prefix, Entry::Empty)?;
    }
    for (path, entry) in &tree.entries {
        let path = if prefix.is_empty() { path.clone() } else { format!("{prefix}/{path}") };
        match entry {
            Entry::Tree { digest } => {
                expand(blobs, &read_record::<Tree>(blobs, *digest)?, &path, depth + 1, flat)?;
            }
            other => flat.insert(&path, other.clone())?,
        }
        if flat.entries.len() > ENTRIES {
            return Err(MaterialiseError::TooLarge);
        }
    }
    Ok(())
}
