/**
 * The page's style sheet. Colours are named by their meaning and chosen separately for light and dark: each set keeps
 * its contrast and can be told apart without seeing red and green.
 */
export const PAGE_STYLE = `
:root{color-scheme:light dark;
--page:#f9f9f7;--card:#fcfcfb;--ink:#0b0b0b;--soft:#52514e;--faint:#6f6d68;--grid:#e7e6e0;--edge:rgba(11,11,11,.1);
--served:#2a78d6;--shed:#eb6834;--failed:#d03b3b;--asked:#0b0b0b;--calm:#1baf7a;--slow:#4a3aa7;--promise:#6f6d68;
--good:#006300;--bad:#b3261e;
--rung0:#e7e6e0;--rung1:#9ec5f4;--rung2:#5598e7;--rung3:#256abf;--rung4:#104281;--rung5:#0d366b}
@media(prefers-color-scheme:dark){:root{
--page:#0d0d0d;--card:#1a1a19;--ink:#fff;--soft:#c3c2b7;--faint:#989690;--grid:#2c2c2a;--edge:rgba(255,255,255,.1);
--served:#3987e5;--shed:#d95926;--failed:#e66767;--asked:#fff;--calm:#199e70;--slow:#9085e9;--promise:#989690;
--good:#0ca30c;--bad:#e66767;
--rung0:#2c2c2a;--rung1:#184f95;--rung2:#256abf;--rung3:#3987e5;--rung4:#86b6ef;--rung5:#cde2fb}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:26px;line-height:1.2;margin:0;letter-spacing:-.01em}
h2{font-size:15px;margin:0;font-weight:650}
p{margin:0}
header p{color:var(--soft);margin-top:6px;max-width:70ch}
.verdict{display:inline-flex;align-items:center;gap:8px;margin-top:14px;padding:5px 12px;border:1px solid var(--edge);
border-radius:999px;background:var(--card);font-weight:600}
.verdict.good b{color:var(--good)}.verdict.bad b{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin:22px 0 12px;padding:0}
.tile{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:12px 14px}
.tile span{display:block;color:var(--soft);font-size:13px}
.tile b{display:block;font-size:24px;line-height:1.25;font-weight:650;letter-spacing:-.01em}
.tile small{color:var(--faint);font-size:12.5px}
.grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:12px}
.card{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:14px 16px;margin:0;min-width:0}
.card+.card.wide,.wide{margin-top:12px}
figcaption p,.card>p{color:var(--soft);font-size:13px;margin-top:1px}
.legend{display:flex;flex-wrap:wrap;gap:3px 14px;list-style:none;margin:8px 0 0;padding:0;font-size:13px;color:var(--soft)}
.legend li{display:flex;align-items:center;gap:6px}
.key{width:14px;height:10px;border-radius:3px;background:var(--color)}
.key.line,.key.area{height:3px;border-radius:2px}
.key.dashed{height:0;border-radius:0;background:none;border-top:2px dashed var(--color)}
.frame{display:grid;grid-template-columns:56px minmax(0,1fr);grid-template-rows:var(--height) 22px;margin-top:12px}
.ylabels,.xlabels{position:relative;color:var(--faint);font-size:12px;font-variant-numeric:tabular-nums}
.ylabels span{position:absolute;right:8px;transform:translateY(-50%);white-space:nowrap}
.xlabels{grid-column:2}
.xlabels span{position:absolute;top:5px;transform:translateX(-50%)}
.xlabels span:first-child{transform:none}.xlabels .end{transform:translateX(-100%)}
.canvas{position:relative;border-bottom:1px solid var(--faint);outline-offset:3px;cursor:crosshair;touch-action:pan-y}
svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}
svg path{vector-effect:non-scaling-stroke;fill:none}
svg .grid{stroke:var(--grid);stroke-width:1}
svg .line{stroke:var(--color);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
svg .promise{stroke:var(--color);stroke-width:1.5;stroke-dasharray:5 4}
svg .fill{fill:var(--color);stroke:var(--card);stroke-width:1}
svg .wash{fill:var(--color);opacity:.14}
.cursor{position:absolute;top:0;bottom:0;width:1px;background:var(--faint);display:none;pointer-events:none}
.tip{position:absolute;top:6px;z-index:2;display:none;pointer-events:none;background:var(--card);border:1px solid var(--edge);
border-radius:8px;padding:7px 10px;font-size:12.5px;line-height:1.5;box-shadow:0 4px 16px rgba(0,0,0,.14);white-space:nowrap}
.tip b{font-weight:600}.tip i{display:inline-block;width:9px;height:9px;border-radius:3px;margin-right:6px}
.scroll{overflow-x:auto;margin-top:10px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{color:var(--soft);font-weight:500;text-align:right;padding:4px 10px;border-bottom:1px solid var(--grid);white-space:nowrap}
td{padding:6px 10px;text-align:right;border-bottom:1px solid var(--grid);font-variant-numeric:tabular-nums;white-space:nowrap}
tr:last-child td{border-bottom:0}
th:first-child,td:first-child{text-align:left;padding-left:0}
th:last-child,td:last-child{padding-right:0}
td.text{text-align:left;white-space:normal}
th.text{text-align:left}
.bar{position:relative;width:100%;min-width:120px;height:12px;border-left:1px solid var(--faint)}
.bar i{position:absolute;inset:0 auto 0 0;background:var(--served);border-radius:0 4px 4px 0}
.bar s{position:absolute;top:-3px;bottom:-3px;width:2px;background:var(--ink)}
.mark{font-weight:650;white-space:nowrap}.mark.good{color:var(--good)}.mark.bad{color:var(--bad)}
details{margin-top:12px}summary{cursor:pointer;color:var(--soft)}
footer{margin-top:28px;color:var(--faint);font-size:13px}
@media(max-width:520px){main{padding:20px 12px 36px}.card{padding:12px}.frame{grid-template-columns:46px minmax(0,1fr)}h1{font-size:22px}
.stack table,.stack tbody{display:block}.stack thead{display:none}
.stack tr{display:grid;grid-template-columns:5fr 4fr;gap:2px 16px;padding:8px 0;border-bottom:1px solid var(--grid)}
.stack tr:last-child{border-bottom:0}
.stack td{display:flex;justify-content:space-between;align-items:baseline;gap:8px;padding:2px 0;border:0}
.stack td::before{content:attr(data-label);color:var(--soft);text-align:left;white-space:normal}
.stack td:first-child{grid-column:1/-1;font-weight:650;white-space:normal;overflow-wrap:anywhere}.stack td:first-child::before{content:none}
.stack td:has(.bar){grid-column:1/-1}.stack td:has(.bar)::before{content:none}.stack td:empty{display:none}}
@media print{body{background:#fff}.card,.tile{break-inside:avoid}}
`
