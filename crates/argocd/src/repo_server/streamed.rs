//! Files that a client sends, rendered in the place of those of a source (`argocd app diff --local
//! --server-side-generate`).

use std::{collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};
use tiphys_controller::Controller;
use tiphys_source::{MAX_ARCHIVE_BYTES, unpack};
use tonic::{Status, Streaming};

use super::{
    handlers::{generate, invalid_argument},
    messages::{ManifestFileMetadata, ManifestRequest, ManifestRequestWithFiles, ManifestResponse, Part},
};

pub(super) async fn generate_manifest(
    controller: Arc<Controller>,
    mut pieces: Streaming<ManifestRequestWithFiles>,
) -> Result<ManifestResponse, Status> {
    let Some(Part::Request(request)) = next(&mut pieces).await? else {
        return Err(invalid_argument("the first message holds no request"));
    };
    let Some(Part::Metadata(metadata)) = next(&mut pieces).await? else {
        return Err(invalid_argument("the second message says nothing of the archive"));
    };
    let archive = receive(&mut pieces, &metadata).await?;
    let tree = tokio::task::spawn_blocking(move || unpack(&archive, "the archive that was sent")).await;
    let tree = tree.map_err(|error| Status::internal(format!("the work broke off: {error}")))?;
    let tree = tree.map_err(|error| invalid_argument(error.to_string()))?;
    let request = ManifestRequest { ref_sources: HashMap::default(), ..*request };
    generate(controller, request, Some(Arc::new(tree))).await
}

async fn next(pieces: &mut Streaming<ManifestRequestWithFiles>) -> Result<Option<Part>, Status> {
    Ok(pieces.message().await?.and_then(|message| message.part))
}

/// The archive, which must be what its checksum says.
async fn receive(
    pieces: &mut Streaming<ManifestRequestWithFiles>,
    metadata: &ManifestFileMetadata,
) -> Result<Vec<u8>, Status> {
    let mut archive = Vec::new();
    while let Some(message) = pieces.message().await? {
        let Some(Part::Chunk(piece)) = message.part else {
            return Err(invalid_argument("a message after the second holds no bytes of the archive"));
        };
        archive.extend_from_slice(&piece.chunk);
        if archive.len() as u64 > MAX_ARCHIVE_BYTES {
            return Err(invalid_argument(format!("the archive is larger than {MAX_ARCHIVE_BYTES} bytes")));
        }
    }
    let found = format!("{:x}", Sha256::digest(&archive));
    if found != metadata.checksum {
        let said = &metadata.checksum;
        return Err(invalid_argument(format!(
            "the archive has the checksum {found}, and {said} was sent for it"
        )));
    }
    Ok(archive)
}
