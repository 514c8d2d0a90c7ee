//! A Homebrew formula for the archives that are there. It needs the address they will be downloaded from.

use super::archive::sum;
use super::{Release, files};

pub(super) fn write(release: &Release) -> Result<(), String> {
    let Some(url) = &release.url else {
        println!("no formula: name the address of the files with --url");
        return Ok(());
    };
    let mut blocks = String::new();
    for (brew, processor) in [("intel", "x86_64"), ("arm", "aarch64")] {
        let target = format!("{processor}-unknown-linux-musl");
        let one = Release { target, ..release.clone() };
        if one.archive().is_file() {
            let name = one.name();
            blocks += &format!(
                "    on_{brew} do\n      url \"{url}/{name}.tar.gz\"\n      sha256 \"{}\"\n    end\n",
                sum(&one.archive())?
            );
        }
    }
    files::write(&release.out.join("archeflow.rb"), &text(&release.version, &blocks))
}

fn text(version: &str, blocks: &str) -> String {
    format!(
        "class Archeflow < Formula\n  desc \"Run coding agents through Plan-Do-Check-Act\"\n  version \"{version}\"\n  \
         license \"MIT\"\n  depends_on \"git\"\n\n  on_linux do\n{blocks}  end\n\n  def install\n    \
         bin.install \"archeflow\"\n    man1.install Dir[\"man/*.1\"]\n    \
         bash_completion.install \"completions/archeflow.bash\" => \"archeflow\"\n    \
         zsh_completion.install \"completions/_archeflow\"\n    fish_completion.install \"completions/archeflow.fish\"\n  \
         end\n\n  test do\n    system bin/\"archeflow\", \"--version\"\n  end\nend\n"
    )
}
