# Written by `cargo xtask release` from packaging/homebrew.rb.
class Tiphys < Formula
  desc "GitOps engine for Kubernetes that runs Argo CD's Applications"
  homepage "https://github.com/tiphys/tiphys"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
#@ if aarch64-apple-darwin
    on_arm do
      url "https://github.com/tiphys/tiphys/releases/download/v@VERSION@/tiphys-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
#@ end
#@ if x86_64-apple-darwin
    on_intel do
      url "https://github.com/tiphys/tiphys/releases/download/v@VERSION@/tiphys-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
#@ end
  end

  on_linux do
#@ if aarch64-unknown-linux-musl
    on_arm do
      url "https://github.com/tiphys/tiphys/releases/download/v@VERSION@/tiphys-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
#@ end
#@ if x86_64-unknown-linux-musl
    on_intel do
      url "https://github.com/tiphys/tiphys/releases/download/v@VERSION@/tiphys-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
#@ end
  end

  def install
    bin.install "tiphys"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/tiphys.bash" => "tiphys"
    zsh_completion.install "completions/_tiphys"
    fish_completion.install "completions/tiphys.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tiphys version")
  end
end
