"""The characters of the `glyphs` data set, by alphabet, and which split an alphabet belongs to.

Every character is in DejaVu Sans, and no two of them look alike: of characters whose upright outlines, scaled to the same
size, agree too closely only the first is here (a test draws them all and compares), which is why alphabets that share
shapes are not complete.
"""

# (split, alphabet, characters)
ALPHABETS = (
    ("test", "Armenian", "ԱԲԳԵԶԸԹԺԻԼԽԾԿՀՂՃՄՅՆՇՈՉՊՌՎՒՓՔՕՖադըթիլխծկհմյնշչպռվցֆ"),
    ("test", "Hebrew", "אבגדולמנעףפץצקרש"),
    ("test", "Georgian Mkhedruli", "ბდეთკლრსფქჴ"),
    ("test", "Tifinagh", "ⴰⴳⴷⴸⴹⴻⴼⴽⴾⴿⵁⵃⵄⵆⵈⵉⵋⵌⵍⵐⵒⵖⵗⵘⵛⵜⵣ"),
    ("test", "N'Ko", "ߎߏߐߑߒߓߔߖߜߝߞߟߡߦ"),
    ("val", "Georgian Asomtavruli", "ႢႥႧႩႪႫႯႵႸႺႼႽႾჁჃ"),
    ("val", "Old Italic", "𐌂𐌊𐌋𐌌𐌍𐌎𐌑𐌒𐌖𐌙"),
    ("val", "Lao", "ກຂຄຊຍຕຖທນປຜຝຣລ"),
    ("val", "Ogham", "ᚂᚃᚆᚇᚈᚋᚌᚍᚓ"),
    ("train", "Latin", "HTZefkrwy"),
    ("train", "Digits", "57"),
    ("train", "Greek", "ΞΨαβζλμςφ"),
    ("train", "Coptic", "ϢϦϫ"),
    ("train", "Cyrillic", "ЂЉЊЋДЖКЛЦЩЫЬЮгчъяђћџ"),
    ("train", "Cyrillic extended", "ѤѦѨѪѰѸѺѼѾҊҎҔҘҚҠңҤҦҪҲҶҼҾӆӈӔӕӘӠӺ"),
    ("train", "IPA", "ɚɠɣɱɶɹɻɽʀʁʉʍʐʑʓʖʛʞʢʣʤʦʨʩʪʫʭ"),
    ("train", "Arabic", "ءبتثجخذرسشطغفقكلمنوىي"),
    ("train", "Canadian Aboriginal", "ᐅᐆᐊᐋᐍᐏᐑᐒᐓᐔᐕᐗᐘᐚᐟᐠᐥᐫᐵᐷᐾᑆᑏᑐᑑᑗᑙᑛᑜᑝᑞᑟᑠᑡᑢᑣᑤᑮᑴᑶᑷᑸᑹᑺᑻᑿᒀᒁᒊᒓᒚᒛᒜᒮᒯᒰᒱᒴᒷᒹ"),
    ("train", "Currency", "₠₢₤₧₪₯₰₲₹₺"),
    ("train", "Arrows", "←→↕↖↗↘↙↜↝↟↫↯↰↱↲↳↴↵↶↷↸↹↺↻↼↽↿⇀⇄⇈⇊⇐⇖⇗⇘⇙⇧⇨⇩⇱⇲⇶"),
    ("train", "Mathematics", "∂∈∓∔√∛∝∟∠∴∵∶∷∸∹∺∾∿≂≃≅≆≎≏≒≓≗≛≣≤≥≦≧≪≫≶≷≺≻≼⊂⊃⊆⊇⊏⊓⊚⊠⊢⊣⊥⊦⊨⊩⊪⊰⊱⊹⊿⋆⋈⋋⋌⋎⋔⋚⋛⋜⋝⋤"),
    ("train", "Shapes", "□▭△▷▸▽◀◌◐◑◓◔◘◜◝◟◠◢◣◤◥◭◮◴◶◸◹◺◿"),
    ("train", "Symbols", "☃☄☆☈☉☊☋☌☍☑☕☖☗☘☜☝☞☟☡☢☣☧☭☰☼☿♂♃♅♈♋♌♍♎♏♑♖♗♘♡♢♤♨♩♪♫♬♭♮♳♾♿⚇⚋⚏⚑⚒⚓⚖⚗⚞⚟⚡⚢⚣⚤⚥⚦⚩⚶"),
    ("train", "Dingbats", "✂✆✇✍✕✞✠✩❞❥➀➂➬➭➮➴➶"),
)
