"""Word lists for ``extract``: what is said when something is decided or wished for.

Plain lists, by language, to be read and replaced. A phrase of several words is met as these
words in a row; one in Chinese or Japanese wherever it stands, since these put no blanks
between words. Phrases are chosen to mean little else, in the other languages too: all lists
are used at once, because people mix languages and short messages do not tell theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Words(NamedTuple):
    """The words of one language, in small letters, with straight apostrophes."""

    decisions: tuple[str, ...] = ()
    """What says that something was decided."""
    preferences: tuple[str, ...] = ()
    """What says that the user wants something so, or not so."""
    stop: frozenset[str] = frozenset()
    """Words without a theme; in Chinese and Japanese, characters."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split("|"))


ENGLISH = Words(
    _phrases(
        "decided|we decide|decision|let's go with|lets go with|go with|going with|let's use|"
        "lets use|we'll use|we will use|i'll use|i will use|we'll go|let's keep|we'll keep|"
        "let's stick|stick with|sticking with|agreed|settled on|we chose|i chose|chosen|"
        "we choose|final choice|the plan is|conclusion|from now on|approved"
    ),
    _phrases(
        "i prefer|we prefer|prefer|i like|i'd like|i would like|i want|we want|i don't want|"
        "i do not want|please don't|please do not|please use|please always|please avoid|"
        "always|never|make sure|avoid|don't use|do not use|don't ever|must not|must be|"
        "i hate|i dislike|i need|as short as|rather not|i'd rather|keep it"
    ),
    _words(
        "a about after again all also am an and any are aren't as at back be because been "
        "before being but by can can't cannot could did didn't do does doesn't doing don't "
        "done down each else even every few first for from get gets go goes going good got "
        "had has have having he her here hers him his how i i'd i'll i'm i've if in instead "
        "into is isn't it it's its itself just know last let let's like ll look make makes "
        "many may maybe me might more most much must my need needs never new next no not now "
        "of off ok okay on once one only or other our out over own please put really right "
        "same say see seems shall she should so some still such sure take than thank thanks "
        "that that's the their them then there there's these they thing things think this "
        "those through time to too two under until up upon us use used uses using very want "
        "was way we we'll we're well were what what's when where which while who why will "
        "with without won't work would yes yet you you're your yours always prefer file files"
    ),
)
GERMAN = Words(
    _phrases(
        "entschieden|entscheidung|beschlossen|wir nehmen|ich nehme|nehmen wir|wir verwenden|"
        "verwenden wir|wir nutzen|wir machen es|machen wir es|wir bleiben bei|bleiben wir bei|"
        "einigen wir uns|vereinbart|abgemacht|ab jetzt|von nun an|ab sofort|"
        "festgelegt|der plan ist"
    ),
    _phrases(
        "ich bevorzuge|wir bevorzugen|ich möchte|ich will|ich hätte gern|lieber|am liebsten|"
        "bitte nicht|bitte kein|bitte keine|bitte nie|bitte immer|immer|niemals|nie wieder|"
        "achte darauf|vermeide|ich mag|ich brauche|auf keinen fall|unbedingt|verwende keine"
    ),
    _words(
        "aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist "
        "bitte da damit dann das dass dein deine dem den denn der des dich die dies diese "
        "dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas "
        "euch euer für gegen gibt habe haben hat hatte hier ich ihm ihn ihnen ihr ihre im in "
        "ins ist ja jede jeder jedes jetzt kann kannst kein keine können man mehr mein meine "
        "mich mir mit muss müssen nach nein nicht nichts noch nun nur ob oder ohne schon sehr "
        "sein seine sich sie sind so soll sollen sollte über um und uns unser unter vom von "
        "vor war waren warum was weil wenn wer werden wie wieder will wir wird wo wurde würde "
        "zu zum zur zwischen"
    ),
)
FRENCH = Words(
    _phrases(
        "décidé|décision|on part sur|partons sur|on va utiliser|nous allons utiliser|utilisons|"
        "on utilise|on garde|gardons|nous gardons|on reste sur|restons sur|d'accord pour|"
        "c'est convenu|nous avons choisi|on a choisi|j'ai choisi|"
        "désormais|à partir de maintenant|dorénavant|validé"
    ),
    _phrases(
        "je préfère|nous préférons|j'aimerais|je voudrais|je veux|je ne veux pas|j'aime|"
        "je n'aime pas|toujours|jamais|évite|évitez|évitons|surtout pas|assure-toi|"
        "assurez-vous|il faut|s'il te plaît pas|n'utilise pas|n'utilisez pas|j'ai besoin|"
        "de préférence"
    ),
    _words(
        "a ai alors après au aucun aussi autre aux avec avez avoir avons bien c'est ce cela "
        "ces cet cette ceux chaque comme comment d'un d'une dans de des deux dois doit donc du "
        "elle elles en encore entre es est et était être eu fait faire faut il ils j'ai je l "
        "la le les leur leurs lui ma mais me même mes moi mon n'est ne nos notre nous on ont "
        "ou où par parce pas peu peut peux plus plutôt pour pourquoi qu'il qu'on quand que "
        "quel quelle qui quoi sa sans se sera ses si son sont sous sur ta te tes toi ton tous "
        "tout toute toutes très tu un une va vers veux voir vos votre vous y"
    ),
)
SPANISH = Words(
    _phrases(
        "decidido|decidimos|decidí|decisión|usaremos|vamos a usar|vamos con|usemos|"
        "nos quedamos con|quedamos en|acordado|de acuerdo con|elegimos|elegido|hemos elegido|"
        "a partir de ahora|de ahora en adelante|aprobado|el plan es"
    ),
    _phrases(
        "prefiero|preferimos|preferiría|me gusta|me gustaría|no me gusta|quiero|no quiero|"
        "quisiera|siempre|nunca|jamás|evita|evite|evitar|no uses|no use|por favor no|"
        "asegúrate|necesito|debe ser|no debe"
    ),
    _words(
        "a al algo algún alguna ante antes aquí así aún aunque bien cada como cómo con cual "
        "cuál cuando cuándo de del desde donde dónde dos e el él ella ellas ellos en entre era "
        "eres es esa ese eso esta está están estar este esto estos fue ha había hace hacer han "
        "has hasta hay he la las le les lo los más me mi mis mismo muy nada ni no nos nosotros "
        "o os otra otro para pero poco por porque puede puedo pues que qué quien se sea según "
        "ser si sí sin sobre solo son soy su sus también tan tanto te tengo tiene todo todos "
        "tu tú un una uno unos usted va vamos ya yo"
    ),
)
PORTUGUESE = Words(
    _phrases(
        "decidido|decidimos|decidi|decisão|vamos usar|usaremos|vamos com|vamos ficar com|"
        "ficamos com|combinado|ficou acordado|escolhemos|escolhido|"
        "a partir de agora|de agora em diante|aprovado|o plano é"
    ),
    _phrases(
        "prefiro|preferimos|preferia|gosto de|gostaria|não gosto|eu quero|quero|não quero|"
        "queria|sempre|nunca|jamais|evite|evita|não use|não usar|por favor não|"
        "certifique-se|preciso de|deve ser|não deve"
    ),
    _words(
        "a ainda além algo alguma ao aos apenas aqui as até bem cada com como da das de dela "
        "dele depois do dos e é ela elas ele eles em entre era essa esse esta está este eu faz "
        "fazer foi for há isso isto já lá lhe mais mas me mesmo meu minha muito na nada não nas "
        "nem no nos nós nossa nosso num numa o onde os ou outra outro para pela pelo pode por "
        "porque pra qual quando que quem se sem ser seu seus só sobre sou sua suas também te "
        "tem tenho ter todo todos tu tudo um uma você vocês vou"
    ),
)
ITALIAN = Words(
    _phrases(
        "deciso|abbiamo deciso|decisione|useremo|usiamo|andiamo con|restiamo con|teniamo|"
        "d'accordo con|concordato|abbiamo scelto|ho scelto|"
        "d'ora in poi|da ora in poi|approvato|il piano è"
    ),
    _phrases(
        "preferisco|preferiamo|preferirei|mi piace|mi piacerebbe|non mi piace|voglio|"
        "non voglio|vorrei|sempre|mai usare|non usare|evita|evitare|per favore non|"
        "assicurati|ho bisogno|deve essere|non deve"
    ),
    _words(
        "a ad ai al alla alle allo anche ancora avere c'è che chi ci ciò col come con contro "
        "così cosa cui da dai dal dalla degli dei del della delle dello deve di dopo dove due e "
        "è ed era essere fa fare fra gli ha hai hanno ho i il in io l la le lei li lo loro lui "
        "ma me mi mia mio molto ne nei nel nella no noi non nostro o ogni oltre per perché però "
        "più poi prima può qual quale quando quanto quello questa queste questi questo qui sarà "
        "se sei senza si sì sia solo sono sopra sta su sua sui sul sulla suo te tra tu tua tuo "
        "tutti tutto un una uno vi voi vostro"
    ),
)
DUTCH = Words(
    _phrases(
        "besloten|beslissing|besluit|we gebruiken|laten we|we gaan voor|we kiezen|gekozen|"
        "we houden het bij|we blijven bij|afgesproken|vanaf nu|voortaan|"
        "akkoord met|goedgekeurd|het plan is"
    ),
    _phrases(
        "liever|het liefst|ik wil|ik wil geen|ik wil niet|ik zou graag|graag|altijd|nooit|"
        "vermijd|gebruik geen|alsjeblieft niet|alsjeblieft geen|zorg ervoor|zorg dat|"
        "ik hou van|ik hou niet van|ik heb nodig|moet zijn|mag niet"
    ),
    _words(
        "aan af al alle alles als altijd andere ben bij daar dan dat de deze die dit doch doen "
        "door dus een eens en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe "
        "hun iemand iets ik in is ja je jij kan kon kunnen maar me meer men met mij mijn moet "
        "na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen "
        "tot u uit uw van veel voor want waren was wat we wel werd wezen wie wij wil worden "
        "wordt zal ze zelf zich zij zijn zo zonder zou"
    ),
)
VIETNAMESE = Words(
    _phrases(
        "quyết định|đã chọn|chúng ta chọn|tôi chọn|chốt|sẽ dùng|sẽ sử dụng|hãy dùng|"
        "chúng ta dùng|chúng ta sẽ|thống nhất|đồng ý dùng|từ giờ|từ nay|kể từ bây giờ|"
        "giữ nguyên|phê duyệt"
    ),
    _phrases(
        "tôi thích|mình thích|em thích|anh thích|tôi muốn|mình muốn|em muốn|anh muốn|"
        "không muốn|không thích|luôn luôn|luôn|không bao giờ|đừng|ưu tiên|tránh|"
        "tốt nhất là|làm ơn đừng|xin đừng|phải luôn|cần phải|nhớ là|tôi cần"
    ),
    _words(
        "à ạ anh ấy bạn bị bởi cả các cái cần chỉ cho chưa chứ chúng có cô con của cũng cùng "
        "cứ đã đang đâu đây để đến đều đi đó được em gì giờ hãy hay hết hơn không khi là lại "
        "làm lên lúc luôn mà mình một muốn này nên nếu ngay nhé nhiều nhưng những như nó nói "
        "nữa ở phải qua ra rằng rất rồi sao sau sẽ ta tại thế thì theo thôi tôi trên trong "
        "trước tự từ vẫn vào vậy về vì việc với vừa xin bao nào thích dùng đừng"
    ),
)
CHINESE = Words(
    _phrases(
        "决定|決定|就用|我们用|我們用|我们采用|採用|采用|选择了|選擇了|选定|選定|确定用|確定用|"
        "敲定|同意用|改用|改为|改為|从现在开始|從現在開始|以后都|以後都|方案是|结论是|結論是"
    ),
    _phrases(
        "我喜欢|我喜歡|我更喜欢|我更喜歡|我想要|我希望|我要|我不想|我不要|偏好|偏爱|偏愛|总是|總是|"
        "一定要|务必|務必|不要|永远不|永遠不|别用|別用|请勿|請勿|最好|尽量|盡量|避免|我需要"
    ),
    _words(
        "的 了 是 在 我 你 您 他 她 它 们 們 和 与 與 或 也 就 都 而 及 着 著 过 過 把 被 让 "
        "讓 给 給 到 从 從 向 对 對 为 為 这 這 那 哪 个 個 些 么 麼 什 吗 嗎 呢 吧 啊 很 还 "
        "還 又 再 要 会 會 能 可 以 不 没 沒 有 请 請 上 下 里 裡 中 来 來 去 说 說 做 用 想 "
        "好 如 果 因 所 但 并 並 只 其 之 于 於 则 則 时 時 后 後 前 一 二 三 几 幾 多 少"
    ),
)
JAPANESE = Words(
    _phrases(
        "決定|決めました|決まりました|に決め|にします|にしました|を使います|を使いましょう|"
        "を採用|採用し|にしましょう|で行きましょう|でいきましょう|"
        "今後は|これからは|合意|承認|方針は|結論は"
    ),
    _phrases(
        "が好き|は嫌い|好みは|の方がいい|のほうがいい|がいいです|てほしい|て欲しい|したいです|"
        "しないで|使わないで|やめてください|必ず|常に|絶対に|いつも|避けて|避けたい|"
        "なるべく|できるだけ|希望し|優先し"
    ),
    _words("何 今 私 僕 君 彼 人 方 事 物 様 的 等 為 時 中 上 下 前 後 間 内 外 一 二 三 本 当"),
)

WORDS: Mapping[str, Words] = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "pt": PORTUGUESE,
    "it": ITALIAN,
    "nl": DUTCH,
    "vi": VIETNAMESE,
    "zh": CHINESE,
    "ja": JAPANESE,
}
"""By language code. Give a copy of your own to ``extract.plan`` to add, change or leave out:
``WORDS | {"sv": Words(…)}``."""
