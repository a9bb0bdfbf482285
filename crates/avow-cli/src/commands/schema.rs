//! `avow schema`: the JSON Schema of a spec, for editors.

use crate::args;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the schema, or the table of keys.
pub fn schema(args: &args::Schema, output: &Output) -> Result<Exit, Failure> {
    if args.keys {
        output.data(avow_spec::keys_markdown().trim_end())?;
    } else {
        output.json(&avow_spec::schema(avow_ops::signatures()))?;
    }
    Ok(Exit::Done)
}
