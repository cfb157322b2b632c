//! The grammar of English requests, questions and complaints.

use std::sync::LazyLock;

use super::signs::{Pattern, Patterns, Sign, SignMatch};
use super::text::Sentence;

/// Classes of words.
const LISTS: &[(&str, &str)] = &[
    (
        "adv",
        r"please|pls|plz|kindly|just|simply|also|maybe|perhaps|quickly|only|first|then|now|finally|again|actually|at least|really|either|instead|still|even|possibly|somehow|already|all|directly|immediately",
    ),
    (
        "open",
        r"{adv}|hi|hey|hello|hiya|yo|folks|team|everyone|everybody|guys|morning|good morning|ok|okay|alright|right|so|well|oh|and|but|or|next|second|secondly|afterwards|great|thanks|thx|cool|yes|yep|yeah|sure|fine|nice|perfect|lgtm|btw|fyi|hm|hmm|no|sorry|therefore|meanwhile|today|tonight|tomorrow|this week|this sprint|in the|quick one|when you have time|thank you",
    ),
    ("you", r"you|u|someone|somebody|anyone|anybody|we|the team"),
    (
        "who",
        r"i|we|customers|users|people|our users|our customers|they|everyone|support|sales|marketing|the team|admins",
    ),
    (
        "spec",
        r"specs?|specification|prd|requirements?|criteri(?:on|a)|acceptance criteria|scope|road ?map|non-goals?|definition of done|user stor(?:y|ies)|stor(?:y|ies)|milestones?|decisions?|plan|plans|ⓡ|ⓓ|backlog items?|out of scope|acs?",
    ),
    (
        "edit",
        r"chang(?:e|ing)|updat(?:e|ing)|edit|revis(?:e|ing)|adjust(?:ing)?|amend|rewrit(?:e|ing)|reword(?:ing)?|add(?:ing)?|remov(?:e|ing)|delet(?:e|ing)|drop(?:ping)?|strik(?:e|ing)|mov(?:e|ing)|split(?:ting)?|replac(?:e|ing)|put(?:ting)?|mark|reflect|extend|cut|note|record|document|insert|includ(?:e|ing)|exclud(?:e|ing)|relax(?:ing)?|tighten|lower|raise|swap|merge|rename|switch|set|correct|fix|bump|postpone|clarify|write|make|reduce|shorten|defer|push|take|expand|limit|narrow|loosen|reopen|cross out|scratch|align|phrase|rephrase|turn|simplify|simplifying",
    ),
    (
        "code",
        r"code|modules?|class(?:es)?|functions?|methods?|packages?|crates?|helpers?|services?|controllers?|components?|logic|handlers?|variables?|enums?|structs?|types?|interfaces?|quer(?:y|ies)|loops?|ifs|conditionals|utils?|duplication|duplicated? (?:\w+ )?(?:code|logic|functions?|helpers?|class(?:es)?)|copies|copy-pasted?|wrappers?|director(?:y|ies)|folders?|files?|namespace|hooks?|reducers?|callbacks?|singletons?|globals?|constants?|adapters?|layers?|parsers?|serializers?|middlewares?|repositor(?:y|ies)|librar(?:y|ies)|fixtures?|imports?|switch statement|switches|god (?:class|object)|monolith|implementations?|internals?|codebase|macros?|traits?|mixins?|fields?|args?|arguments?|parameters?|ⓒ|ⓕ",
    ),
    (
        "unit",
        r"sprint|requests?|tasks?|todos?|tickets?|actions?|runs?|jobs? on|work|gates?|pr|mr|merge request|pull request|changes?|agents?|developer|qa|review|ⓘ|queue|train|item",
    ),
    ("it", r"it|that|this|them|these|those|everything|all|all of it|both"),
    (
        "broken",
        r"crash(?:es|ed|ing)?|(?:is|are|was|were|got|seems?|looks?|now|still|again|completely|totally|entirely) broken|broken (?:since|in|on|for|when|after|again)|broken$|breaks|fail(?:s|ing)|throws?|throwing|errors? out|hangs|hanging|freezes|frozen|stuck|wrong|incorrect(?:ly)?|garbled|corrupt(?:ed|s)?|(?:is|are|goes|go|went) missing (?:in|on|from|after|for|when|since)|(?:is|are|goes|go|went) missing$|blank|typos?|misspel\w+|spelling (?:mistake|error)|regression|off by one|leaks|loses|disappears?|vanish(?:es)?|exceptions?|ⓔ|overlaps?|cut off|truncated|stopped working|stops working|not working|not work|nothing happens|nan|null|undefined|404|500|502|503|mangled|out of order|twice|unreadable|swallow(?:s|ed)|ignores|never (?:arrives?|finishes|ends|ends up|loads|updates?|closes|fires|stops)",
    ),
    (
        "big",
        r"(?:feature|page|screen|endpoint|api|command|bot|dashboard|mode|importer|exporter|integration|login|authentication|auth|cli|tool|app|application|service|site|portal|wizard|calendar|chat|view|editor|webhook|plugin|extension|widget|system|module for|way (?:to|for)|report|digest|newsletter|subscription|support for|two-factor|ⓥ login|job that|worker that|script|generator|client|sdk)s?",
    ),
    (
        "better",
        r"faster|quicker|better|smaller|bigger|larger|nicer|clearer|friendlier|shorter|easier|simpler|smoother|cleaner|prettier|cheaper|lighter|softer|calmer|louder|more \w+|less \w+|a (?:bit|little|touch|tad)",
    ),
    (
        "fail",
        r"fail\w*|crash\w*|outages?|incident|down|lost|lose|broke|break|broken|duplicat\w+|twice|spik\w+|leak\w*|time ?outs?|timed out|slow\w*|missing|vanish\w*|disappear\w*|stuck|stopped|drop\w*|skipp\w+|errors?|corrupt\w*|deleted|wiped|wrong|double\w*|gone|happened|empty|restart\w*|reboot\w*|unreachable|went|grew|growth|jump\w*|unavailable|stall\w*|hung|hiccup|full",
    ),
];

/// What stands before the verb of a request.
const FRAMES: &str = concat!(
    r"^(?:can|could|would|will|cud) (?:{you}) (?:(?:{adv}|not) )*",
    r"|^(?:would|do) you mind (?:{adv} )*",
    r"|^(?:mind|how about|what about|any chance of|thinking of) (?:{adv} )*",
    r"|^(?:any|is there any|is there a) chance (?:that )?(?:you|we|someone|somebody) (?:can|could|would)? ?(?:{adv} )*",
    r"|^(?:would it be possible|may i ask you|i'd ask you|i ask you|might i ask you) to (?:{adv} )*",
    r"|^(?:why not|why don't (?:we|you)|why dont we) (?:{adv} )*",
    r"|^(?:i|we) (?:{adv} )*(?:want|need|would like|would love|'d like|'d love|wish) (?:you|someone|somebody|the team|us) to (?:{adv} )*",
    r"|^(?:i|we)'d (?:{adv} )*(?:like|love|appreciate|want) (?:you|someone|somebody|the team|it if you|it if you could|us) (?:to )?(?:{adv} )*",
    r"|^(?:we|you) (?:{adv} )*(?:should|need to|must|have to|ought to|may|can go ahead and|can|could) (?:{adv} )*",
    r"|^(?:let's|lets|let us|time to|it's time to|feel free to|be so kind (?:as )?to|go ahead and|try to|make sure to|i would|i'd|go and|come and) (?:{adv} )*",
);

/// What the verb of a request and its object say; the first that fits counts.
const ORDERS: &[(Sign, &str)] = &[
    (Sign::Hotfix, r"^hot-?fix\b"),
    (
        Sign::GoOn,
        r"^(?:go on|continue|resume|carry on|proceed|keep going|keep at it|go ahead|press on|keep it up)(?: please| now| then| pls)?$",
    ),
    (
        Sign::Command,
        r"^keep\b.*ⓘ (?:\w+ ){0,2}(?:on hold|on ice|paused|blocked|stopped|for later|as it is|as is|closed|cancelled|canceled|waiting|unchanged|parked)\b|^finish\b.*ⓘ (?:\w+ ){0,2}later\b|^(?:continue|go on) to (?:hold|wait|pause)\b|^(?:resume|continue|pick up|go on with)\b.*ⓘ.*\b(?:tomorrow|later|tonight|next (?:week|month|year))$",
    ),
    (
        Sign::GoOn,
        r"^(?:go on|continue|resume|carry on|proceed|keep going|go ahead|pick up|pick (?:it|that|this) (?:back )?up|pick back up|get back to|go back to|keep working|continue working|keep|finish|take up|return to|unpause)\b.*(?:\b(?:ⓘ|where (?:you|we|it|i) (?:\w+ )?(?:left|stopped|were|was|paused)|(?:yesterday|earlier|before|last \w+)(?: please)?$|(?:that|this|it|there|here|please|then|as planned|as before|from there|now)$|(?:work|thing|task|stuff|job|migration|refactoring|refactor|request|ticket|story|import|cleanup|rewrite)\b(?: \w+){0,6}$))",
    ),
    (
        Sign::GoOn,
        r"^(?:go on|continue|carry on|proceed|go ahead|pick up|get back|keep going) (?:with|on|at|from|to) ",
    ),
    (Sign::GoOn, r"^(?:pick|take) (?:the|that|this) .*\b(?:back up|up)\b"),
    (
        Sign::Status,
        r"^(?:show|give|send|post|list|share|get)\b.*\b(?:(?:status|progress|overview|state|update|news|list) (?:of|on|for|about) (?:the |our |all |all the |my |this |everything )?(?:\w+ )?(?:sprint|requests?|ⓘ|team|tasks?|todos?|work|runs?|that is|that's)\b|backlog\b|(?:open|running|pending|waiting|blocked|all) (?:requests|tasks|todos|runs)\b|where (?:we|you|things) stand|what's (?:running|open|left|pending))|^(?:show|give|send|post|share)(?: (?:me|us))? (?:the |a |an )?(?:(?:current|sprint|quick|short|brief|team) )*(?:status|progress|standing)(?: update| report)?(?: please| pls| now)?$",
    ),
    (Sign::Status, r"^status\b"),
    (
        Sign::SkipPlan,
        r"^(?:skip|omit|leave out|forget(?: about)?|spare us|save yourself) (?:the |any |all |another )?(?:\w+ )?(?:planning|plan|research|design|discussion|analysis|spec|specs|ceremony|brainstorming|questions|workshop|refinement)\b",
    ),
    (
        Sign::Ask,
        r"^(?:tell (?:me|us)|explain (?:(?:please|briefly|again|me|us|to (?:me|us)) )*(?:why|what|how|when|where|which|who|whether|the (?:difference|reason|idea|logic))|clarify|let (?:me|us) know|remind (?:me|us)|walk (?:me|us)|describe (?:to me |for me )?(?:how|what|why|it$)|estimate (?:how|the (?:effort|cost))|elaborate|point me|give (?:me|us) (?:a|an|your) (?:\w+ )?(?:opinion|estimate|guess|idea|number|answer|feel\w*|summary|explanation)|help (?:me|us) understand|advise|enlighten|answer)\b",
    ),
    (
        Sign::Investigate,
        r"^(?:investigate|look into|look at|have a look|take a look|dig|analy[sz]e|find out|trace|figure out|track down|diagnose|reconstruct|determine|examine|research|check|get to the bottom|work out|understand|reproduce|find|review|go through|identify|establish|pin down|tell (?:me|us)|piece together)\b.*\b(?:why|causes?d?|reason|what (?:happened|caused|went|made|makes|deleted|triggered|led)|who|{fail}|where .* (?:came|come|from|went)|how (?:this|that|it|such)|root)\b",
    ),
    (
        Sign::Investigate,
        r"^(?:explain|describe)\b.*\b(?:what (?:happened|caused|went wrong)|cause of|root)\b",
    ),
    (
        Sign::Investigate,
        r"^(?:write|do|prepare|draft|compile|put together|produce|run|start|give (?:me|us)|make|document)\b.*\b(?:post-?mortem|postmortem|root cause|rca|incident report|timeline|cause analysis|analysis of (?:the|what|why)|findings|write-?up)\b",
    ),
    (
        Sign::Investigate,
        r"^(?:a )?(?:root cause|rca|post-?mortem|postmortem|cause) (?:analysis |report )?(?:of|for|on|please)\b",
    ),
    (
        Sign::Work,
        r"^(?:investigate|look into|look at|have a look|take a look|dig|trace|track down|analy[sz]e|find out|figure out|determine|examine|research|check|evaluate|assess|explore|find|review|go through)\b",
    ),
    (
        Sign::Restructure,
        r"^(?:refactor|deduplicate|dedupe|de-duplicate|modulari[sz]e|decouple|untangle|restructure|reorgani[sz]e|rearchitect|inline|dry up|factor out)\b",
    ),
    (
        Sign::Restructure,
        r"^(?:rename|split|split up|break up|extract|consolidate|merge|combine|fold|unify|move|pull|pull out|clean up|tidy|tidy up|replace|swap|convert|migrate|port|turn|collapse|simplify|remove|delete|get rid of|drop|separate|flatten|encapsulate|isolate|lift|hoist|join|rewrite|wrap|switch|change|make)\b.*\b{code}\b",
    ),
    (
        Sign::Fix,
        r"^(?:fix|repair|mend|resolve|debug|unbreak|sort (?:it|that|this|them)? ?out|correct|patch|address|take care of|look after|remedy|get .* (?:fixed|working|to work))\b",
    ),
    (
        Sign::Improve,
        r"^(?:improve|polish|enhance|speed up|speed .* up|optimi[sz]e|extend|refine|tweak|tune|fine-?tune|beautify|increase|reduce|shorten|expand|widen|raise|lower|shrink|brush up|spruce up|modernise|modernize|soften|streamline|declutter|reword|rephrase|strengthen|upgrade|make (?:it|that|this|them|the|our|these|those|all|both|sure)|let (?:it|the|our|these|this|them|users|people|me)|teach)\b",
    ),
    (
        Sign::Improve,
        r"^(?:add|write|create|cover|put)\b.*\b(?:tests?|test cases?|coverage|unit tests?|comments?|docs|documentation|logging|log lines?|error messages?|docstrings?|hints?|explanations?)\b",
    ),
    (
        Sign::Improve,
        r"^(?:add|show|include|support|allow|display|put)\b.*\b(?:existing|current|already)\b",
    ),
    (
        Sign::Build,
        r"^(?:implement|code|build|develop|write|ship|make|program|start|begin|go|create)(?: (?:{it}|code|coding|the code|building|implementing|implementation|straight|right|ahead|developing|development|up|only|exactly|as|what|according|per|now|to|the (?:approved|agreed|accepted|attached|final|finished|whole)|ⓓ|ⓡ|from|by|1:1|please|with))(?:\b|$)",
    ),
    (
        Sign::Build,
        r"^(?:implement|code|code up|build|develop)\b.*\b(?:as (?:is|written|specified|described|planned|agreed|designed|it stands|drawn|documented|defined)|per (?:the )?(?:spec|plan|ticket|ⓓ)|according to|exactly|one to one|1:1|to the letter|mock-?ups|wireframes?|spec|design)\b",
    ),
    (Sign::Build, r"^(?:implement|code|build|develop)$"),
    (
        Sign::Create,
        r"^(?:add|create|build|introduce|develop|provide|offer|set up|implement|(?:give|make|write|design|have|put) (?:us |users |customers |people |me |admins )?(?:a|an|another|new|some))\b(?: [^ ]+){0,5}? {big}\b",
    ),
    (
        Sign::Work,
        r"^(?:add|show|include|display|put|allow|support)\b.*\b(?:column|field|flag|option|parameter|sorting|sort|filters?|link|tooltip|placeholder|label|argument|row|line|timestamp|as well|too|total)\b",
    ),
    (
        Sign::Command,
        r"^(?:run|execute|trigger|fire|fire up|launch|start|kick|kick off|re-?run|schedule) (?:the |our |a |an )?(?:registered )?(?:(?:ⓒ|ⓠ)(?: |$)|[\w-]+ action\b)",
    ),
    (
        Sign::Command,
        r"^(?:start|stop|pause|cancel|abort|approve|merge|land|deploy|halt|kill|suspend|reject|withdraw|restart|retry|rerun|close|postpone|park|freeze|promote|prioriti[sz]e|begin|end|hold|hold off|kick off|launch|drop|finish|abandon|discard|release|queue|stand down|call off|scrap|decline|reopen|finali[sz]e|un-?pause|shelve|unqueue|bump|wrap up|take .* off|pull .* from)\b(?:.*\b(?:the|this|that|my|our|current|running|any|whatever is|of) (?:\w+ ){0,3}{unit}\b|.*ⓘ| (?:a |a new |our next |the next )?sprint\b|.*\ball (?:the )?(?:\w+ )?{unit}\b|.*\b(?:all|any|running|open|the) (?:requests|tasks|todos|tickets|runs|agents|changes)\b| (?:on |off |with )?{it}\b(?: (?:on hold|please|for|until|till|now|off|down|right|immediately|all)\b.*)?$|.*\b(?:the|this|that) (?:[\w-]+ ){1,4}(?:work|thing|request|story|stuff|one|piece|change|rewrite|refactoring)\b(?: (?:please|for|until|till|now|right|immediately|on)\b.*)?$| working on\b)",
    ),
    (
        Sign::Command,
        r"^(?:stop|pause|cancel|abort|approve|approved|halt|wait|hold on|stand by|hold|stop everything|merge|land|ship it|reject|rejected)(?: please| now| pls| for now| everything)?$",
    ),
    (
        Sign::Command,
        r"^(?:put|keep|leave|place|set|hold)\b.*\bon (?:hold|ice|pause)\b|^(?:let|leave)\b.*\b(?:wait|rest|lie|alone)\b|^(?:put|set) .*\b(?:aside|back in the queue)\b|^give (?:the |a )?(?:green light|go-ahead|go ahead|ok|okay)\b",
    ),
    (
        Sign::Work,
        r"^(?:add|put|include|show|display|allow|enable|support|give|have|write|build|create|introduce|offer|provide)\b.*\b(?:to|in|into|on|for|of) (?:the|our|my|this|that|its|all|every|each|these|existing|ⓒ|ⓕ)\b",
    ),
    (
        Sign::Create,
        r"^(?:add|create|build|introduce|develop|provide|offer|set up|support|implement|invent|come up with|launch|whip up|integrate|(?:give|make|write|allow|design|have|put|get) (?:us |users |customers |people |me |admins )?(?:a|an|another|new|some))\b.*\w",
    ),
];

/// What is seen anywhere in a clause that no verb of a request begins.
const TOLD: &[(Sign, &str)] = &[
    (
        Sign::Command,
        r"^(?:approved|go for|green light for|permission granted|rejected|cancelled)\b",
    ),
    (
        Sign::Status,
        r"\b(?:status|progress|update|news|eta) (?:of|on|for)\b.*\b(?:sprint|requests?|work|tasks?|ⓘ|team|todos?)|^(?:status|progress|any (?:news|updates?|progress))(?: please| pls| update)?$|\bwhere (?:do|are) (?:we|you|things)(?: all)? (?:stand|at)\b|\bwhat(?:'s| is| are)(?: \w+){0,4} (?:working on|busy with|open|running|in progress|queued|blocked|left|in flight|in the queue|pending)\b|\bhow far (?:are|is|along|did)\b|\bwhat(?:\'s| is) the (?:state|status|progress) (?:of|on|with)\b.*\b(?:work|sprint|ⓘ|request|task|story)\b|\bhow(?:'s| is| are) (?:ⓘ|the \w+|it|things) (?:\w+ )?(?:coming (?:along|on)|going|doing|progressing)\b|\bwhat did (?:you|the team)(?: all)? (?:finish|get done|do|ship|land|achieve|complete)\b|\bwhat are you (?:all |\w+ )?(?:doing|up to)\b|\bhow(?:'s| is) (?:the |it |everything )?(?:sprint|work|it going|going|progress\w*)\b",
    ),
    (
        Sign::Hotfix,
        r"\b(?:need|needs|want|require|do|make|ship|get|push) (?:a |an |this |it )?(?:immediate |urgent |quick )?(?:as a )?hot-?fix\b|^hot-?fix(?: needed| please| required| now| asap|$)",
    ),
    (
        Sign::Investigate,
        r"\broot cause\b|\bpost-?mortem\b|^what (?:happened|was (?:going on|that|the cause)|went wrong|caused|made|led|triggered)\b|\bwhat caused\b",
    ),
    (
        Sign::Over,
        r"\b(?:resolved|recovered|healed|restored|fixed itself|(?:is|was|are) (?:fixed|over|back|live|stable|fine|up)|back to normal|already (?:fixed|restored|patched|solved|live|helped|refunded)|works again|working again|is fine (?:since|now|again)|fix (?:is|was) (?:\w+ )?(?:live|out|in|deployed)|only (?:the |want )?(?:cause|findings|report|explanation|understand)|findings only|just the (?:findings|cause|reason|explanation)|report back|no (?:fix|repair|change) (?:needed|wanted|required|please|yet)|before (?:anyone|anybody|we|you) (?:\w+ )?(?:fix|touch|change|write))",
    ),
    (
        Sign::Calm,
        r"\b(?:not urgent|no (?:rush|hurry|hotfix|panic|stress|pressure)|isn't urgent|nothing urgent|low priority|low prio|when(?:ever)? you (?:have|find|get) (?:the )?time|not (?:a )?(?:critical|blocker|blocking|dramatic|an emergency|on fire)|nobody is (?:blocked|hurt|affected|hit)|harmless|cosmetic|no emergency|can wait|some ?time|minor|only on (?:staging|dev|my machine|localhost)|on (?:staging|localhost)|a few (?:users|customers))\b",
    ),
    (
        Sign::Production,
        r"\b(?:production|prod|live (?:shop|site|system|server|servers|app|store|customers|users|page|game|environment|traffic|data|stack)|on live|is live|(?:the|our|in) live)\b|^live \w+",
    ),
    (
        Sign::Harm,
        r"\b(?:all (?:the )?(?:users|customers|players|shops|tenants|requests|orders|clients|patients|drivers|logins|payments)|every (?:user|customer|request|order|shop|tenant|player|single)|everyone|everybody|nobody (?:can|gets|is able)|no ?one can|no (?:user|customer|shop|order|payment|player|patient|driver|tenant)s? (?:can|is|are|go|goes|get|sees?)|all (?:the )?regions|everywhere|for (?:anybody|anyone|everybody|everyone)|100 ?% of|crash-?looping|all of (?:them|our)|each other's|someone else's|other (?:people|customer|user|patient|tenant|client)s?'s?|customers are|users are|users can't|customers can't|customers cannot|users cannot|los(?:e|ing) (?:money|orders|data|customers|sales)|orders are failing|(?:is|are|went|goes|went) (?:completely |totally |entirely )?(?:down|dead|offline|unreachable)|outage|leaking|exposed|being charged|charged twice)\b|\b\w+ down$",
    ),
    (
        Sign::Urgent,
        r"\b(?:urgent|urgently|asap|emergency|immediately|at once|(?:every|this) minute|right now|right away|as fast as|as soon as possible|next \d+ min\w*|on fire|since (?:\d|noon|midnight|the (?:deploy|release)|this morning|today|about \d)|minutes? ago|questions later|drop everything|do something|fast$|now|first|currently|sev ?1|p0|critical|mayday)\b",
    ),
    (
        Sign::NoChange,
        r"\b(?:no (?:change|changes|code|action|work|edits?|fix|implementation)(?: is| are)? (?:needed|wanted|required|please|necessary|yet|intended)|not asking (?:for|you|to)|(?:just|only|merely|simply|genuinely|purely) (?:curious|asking|a question|want to (?:know|understand)|wondering|need to know|interested|need (?:the|a|an) (?:number|estimate|answer|explanation))|no commitment|hands off|i(?:'ll| will| can)(?: \w+)? (?:do|remove|fix|change|run|handle|take care|write) (?:it|that|this|them|the rest)?(?: myself)?|i(?:'ll| will) .* myself|asking out of|out of curiosity|not planning to|no need to (?:change|fix|touch|do|build|implement|add))\b",
    ),
    (
        Sign::SpecReady,
        r"\b(?:specs?|specification|plan|prd|design|designs|mock-?ups?|wireframes?|contract|criteria|requirements|everything|api|architecture|proposal|ticket|brief|concept|all|scope|it|ⓓ|ⓠ|ⓡ)\b(?: \w+){0,6}? (?:is|are|was|were|has been|have been|been|it's|'s|they're|got|and)(?: \w+){0,2} (?:approved|final|finali[sz]ed|signed(?: off)?|agreed|frozen|ready|done|settled|accepted|decided|reviewed|complete|locked|fixed|finished|nailed down|through|confirmed)\b|\b(?:approved|signed[- ]off|agreed|final|accepted|frozen|finished) (?:specs?|specification|plan|prd|design|designs|mock-?ups?|wireframes?|contract|criteria|requirements|api|rfc|ⓓ|concept|version)\b|^(?:specs?|plan|design|prd|ⓓ|criteria) (?:approved|final|ready|signed|agreed|done|accepted)|\bas (?:written|specified|described|agreed|planned|is|designed|documented|it stands|drawn)\b|\b(?:exactly|precisely) (?:like|as|what|per|to)\b|\b(?:according to|per|following|follow|based on|by|from|in) (?:the |our |that )?(?:\w+ )?(?:specs?|specification|plan|prd|design doc|ⓓ|mock-?ups?|wireframes?|acceptance criteria)\b|\b(?:already|all) (?:agreed|decided|settled|approved|discussed|signed)\b|\b1:1\b|\bto the letter\b|\bno open questions\b|\b(?:nothing|not much) (?:left )?to (?:discuss|decide|plan|design)\b|\bthrough (?:\w+ )?reviews?\b",
    ),
    (
        Sign::SkipPlan,
        r"\b(?:no|without|no need for|not need|don't need|skip|skipping|no further|no more|enough) (?:a |an |any |another |more |further |the )?(?:\w+ )?(?:planning|plan|research|design|discussions?|analysis|spec work|brainstorm\w*|workshop|proposal|refinement round)\b",
    ),
    (
        Sign::SameBehaviour,
        r"\b(?:same (?:behaviou?r|output|flags|result|results|api|exit codes|functionality|semantics|responses?)|(?:behaviou?r|output|api|functionality|semantics) (?:stays?|must|should|has to|remains?|as is|unchanged|is the same|identical)|no (?:new )?(?:change|changes) (?:in|to|of) (?:behaviou?r|functionality|output)|no (?:functional|behaviou?ral|visible|user-visible) changes?|tests (?:should|must|have to|stay|need to|shouldn't|keep)(?: \w+){0,3} (?:pass|green|untouched|change|passing)|without (?:changing|touching|altering) (?:the |any )?(?:behaviou?r|output|functionality|api)|no new (?:functionality|behaviou?r|features?)|nothing (?:visible )?(?:should )?changes? (?:for|to) (?:the )?users?|behaviou?r identical|pure refactor\w*)\b",
    ),
    (
        Sign::Restructure,
        r"\b(?:dead code|god (?:class|object)|copy-?pasted|spaghetti|tech(?:nical)? debt)\b.*\b(?:remove|delete|extract|go|away|clean)\b",
    ),
    (
        Sign::Create,
        r"^(?:new feature|new|feature request|feature|feature idea|feature wish|wish|idea)(?: please| wish)?: ",
    ),
    (
        Sign::Create,
        r"\b{who} (?:\w+ly |\w+ really )?(?:would |'d )?(?:really |also |urgently )?(?:want|need|like|love|require)s? (?:to have |to see |to get )?(?:a|an|some|another|new|two) (?:\w+)",
    ),
    (
        Sign::Create,
        r"\b(?:i|we)'d (?:really |also )?(?:like|love|want) (?:to have |to see |to get )?(?:a|an|some|another|new) ",
    ),
    (Sign::Create, r"\b(?:i|we) (?:'d |would )?(?:want|need|like|love) {who} to be able to\b"),
    (
        Sign::Create,
        r"\b(?:would|it'd|it would) be (?:great|nice|good|cool|awesome|useful|helpful|lovely|handy) to have (?:a|an|some)\b",
    ),
    (
        Sign::Improve,
        r"\b(?:would|it'd|it would) be (?:great|nice|good|cool|awesome|useful|helpful|lovely|handy|better) if (?:the|our|this|it|these|that)\b",
    ),
    (
        Sign::Improve,
        r"\b(?:could|should|can|might|may) (?:\w+ )?(?:be|look|feel|load|run|read|start) (?:\w+ )?{better}\b|\bcould (?:use|do with) (?:a|some|more)\b|\bneeds? (?:some |a bit of |a little )?(?:polish|love|tuning|more contrast|more tests)\b",
    ),
    (
        Sign::Improve,
        r"^(?:can|could) (?:the |our |ⓒ|this |these )(?:[\w'-]+ ){0,5}?(?:also|too|as well)\b",
    ),
    (
        Sign::Improve,
        r"\b(?:works?|fine|ok|okay|good)(?: \w+)? but (?:feels?|looks?|is|it|they|it's|could|the)\b",
    ),
    (
        Sign::Work,
        r"\b(?:slow|slowly|sluggish|clunky|ugly|confusing|not (?:helpful|clear|great|nice)|hard to (?:read|find|see|use)|tedious|annoying|cumbersome)\b",
    ),
    (
        Sign::Work,
        r"\b(?:would|it'd|it would) be (?:great|nice|good|cool|awesome|useful|helpful|lovely|better)\b|\bi (?:wish|miss)\b",
    ),
    (
        Sign::Fix,
        r"\b(?:needs?|wants?) (?:to be )?(?:fix(?:ed|ing)|repair(?:ed|ing)?|correct(?:ed|ing)|a fix|mending)\b|\b(?:fix|repair|correct)(?: this| that| it)?,? (?:please|pls)\b|\b(?:please|pls) (?:fix|repair|correct|mend)\b|\b(?:should|must|has to|have to|needs to) be (?:fixed|repaired|corrected)\b",
    ),
    (
        Sign::Fix,
        r"\b(?:want|need|get|have|see) (?:it|this|that|the \w+|a \w+)(?: \w+){0,3} (?:fixed|repaired|corrected)\b",
    ),
    (
        Sign::GoOn,
        r"^(?:you (?:can|may|could|are free to|are good to)|good to|feel free to|ready to|free to|ok to|okay to) (?:{adv} )*(?:go on|continue|resume|carry on|proceed|keep going|go ahead|pick)\b",
    ),
    (Sign::GoOn, r"^(?:unblocked|unpaused|lgtm go|keep going|back to work)\b"),
    (
        Sign::SpecChange,
        r"^(?:requirements?|scope|the (?:scope|requirements?|criteri\w+|deadline in the plan)|acceptance criteri\w+|criteri\w+|decision|ⓡ)\b(?:.*\b(?:changed|changes?|should (?:say|read|be)|must (?:say|read|be)|is (?:now|gone|obsolete|out|void)|no longer|becomes?|was wrong|instead of|moves? to)\b)",
    ),
    (
        Sign::SpecChange,
        r"\b{spec}\b.*\b(?:needs? (?:a|an|to)|should (?:say|read|mention|include|have|cover|list)|must (?:say|read|mention|include|cover)|is missing|lacks|still (?:says|mentions|lists|talks|has|promises)|contradicts?)\b",
    ),
    (Sign::Defect, r"\b{broken}\b"),
    (
        Sign::Defect,
        r"\b(?:an?|this is|found|another|looks like|same|is) (?:\w+ )?bug\b|^bug(?: report)?(?::|$)",
    ),
    (
        Sign::Defect,
        r"\b(?:expected|actual|steps(?: to reproduce)?|to reproduce|repro|describe the bug)$",
    ),
    (
        Sign::Defect,
        r"\b(?:keeps?|kept) (?:spin|crash|turn|show|com|fail|load|reload|flicker|jump|loop|stay|send|los|reset|appear|return|hang|freez|restart|play|blink|grow|disappear|print|open|clos)\w*ing\b|\b(?:shows?|prints?|displays?|returns?|gives?|puts|sends|sorts|outputs?|renders?|calculates|counts|adds|takes|saves) (?:\w+ ){0,4}(?:instead of|although|even though|rather than|but should|the wrong)\b",
    ),
];

/// Something that should work and does not: a thing as subject, a negated verb.
const DOES_NOT: &str = r"(?:can't|cannot|can not|unable to) (?:\w+ )?(?:log ?in|sign ?in|pay|check ?out|connect|load|open|save|play|reach|access|log in|sign in|be (?:opened|saved|loaded|closed|deleted|read|reached|found))\b|(?:^|[a-z0-9ⓐ-ⓩ] )(?:doesn't|does not|doesnt|don't|do not|won't|isn't|aren't|no longer|never|didn't|hasn't) (?:\w+ )?(\w+)";
const NOT_A_DEFECT: &str = r"^(?:i|we|you|they|there|please|so|but|it|that|this|ok|no)\b|\b(?:i|we|you|there|let|please|nobody|people) (?:really |also |just |still |\w+ly )?(?:doesn't|does not|don't|do not|won't|can't|cannot|isn't|aren't|no longer|never|didn't)\b|(?:n't|not|never|longer) (?:\w+ )?(?:support|have|offer|provide|allow|know|feel|look|need|want|matter|mind|care|think|like|change|touch|exist|urgent|sure|clear|understand|helpful|nice|ideal|include)\b";

const NEGATED: &str = r"^(?:{open} )*(?:(?:can|could|would) you )?(?:(?:{adv}) )*(?:do not|don't|dont|do n't|never|no need to|not|without|instead of|rather than|nobody (?:has to|needs to|should)|you (?:don't|do not) (?:have|need) to|you needn't|please don't|(?:i|we) (?:don't|do not) (?:want|need)(?: you)?(?: to)?|(?:i|we)'m not (?:asking|telling)(?: you)? (?:to|for)|i am not asking (?:for|you to|to))\b";
const TOUCHES: &str = r"\b(?:chang\w*|fix\w*|touch\w*|build\w*|add\w*|implement\w*|cod(?:e|ing)|edit\w*|modif\w*|refactor\w*|repair\w*|writ\w*|do anything|start\w*|remove|rewrite|create|merge|deploy|open a (?:pr|ticket)|action|features?|work)\b";
const SUBORDINATE: &str = r"^(?:{adv} )*(?:when|whenever|while|if|unless|because|since|although|though|as|once|after|before|until|till|so that|in case|whether|that|which|who|where|even if|even though|now that|given that|as soon as|as long as|except|like|such as|with|for|to|in order to)\b";
const QUESTION: &str = r"^(?:{open} )*(?:(?:what|which|who|whose|whom|when|where|why|how)(?:'s|'re|'d|s)?|is|are|was|were|do|does|did|has|have|had|should|shall|am|isn't|aren't|wasn't|doesn't|don't|didn't|hasn't|shouldn't|can|could|will|would|may|any|anyone|anybody|does anyone|so)\b";
const ASKED: &str = r"\b(?:i(?:'m| am)? (?:\w+ )?(?:wonder(?:ing)?|curious|asking|want to (?:know|understand)|'d like to (?:know|understand)|need to (?:know|understand))|i'd (?:like|love) to (?:know|understand)|would like to (?:know|understand)|(?:quick|short|stupid|dumb|silly|honest|simple|one|small|another|genuine) question|question(?: for| about| on| to|$|:)|what do you think|your (?:opinion|thoughts|view|take)|any idea|any thoughts|not sure (?:if|whether|why|how|what)|don't (?:get|understand) (?:why|how|what)|no idea (?:why|how|what)|curious|thoughts|can (?:somebody|someone|anyone|anybody|you) (?:\w+ )?(?:tell (?:me|us)|explain (?:to (?:me|us) )?(?:why|what|how|when|where|which|the (?:difference|reason))|clarify|confirm)|tell (?:me|us))\b";
/// A question that may as well be a wish.
const MAYBE_WISH: &str = r"^(?:{open} )*(?:(?:can|could|will|would|may) |is it possible|is there (?:a|any) (?:way|chance|option)|shouldn't|wouldn't it|do (?:we|i|they|people|users) (?:really |still |always )?(?:have|need) to|is (?:it|that|this) (?:intended|normal|expected|correct|supposed|by design|a bug)|how (?:can it|can that|is it possible|is that possible)|does any(?:one|body) else|is it just me|.*\b(?:if|whether) (?:we|you|one|it|the \w+|users|people) (?:could|can|should|might)\b|why (?:can't|don't|isn't|doesn't|won't|does|is|are|do) |how come|any (?:chance|way|plans)|how hard)";
const WISH_ANSWER: &str = r"^(?:{open} )*(?:would (?:it|that|this) (?:be|take|make|break|help|affect|hurt|cost|work)|why (?:is|are|isn't|hasn't|haven't|wasn't|do|does|did) (?:.* )?(?:(?:not|n't) )?(?:merged|deployed|released|landed|shipped|live|done|use|using|need|have|still|called|named|chosen|prefer|keep|pin|pinned|there)\b|how hard)";

/// Where a clause ends.
const CUTS: &str = r"\s*[,:()]\s+|\)|,$|\s+(?:-|--|→|=>)\s+|\s+but\s+|\s+(?:because|so that|whenever|when|while|until|although|though|unless|before|after|as soon as|once|since|if|instead of|rather than|without)\s+|\s+(?:and|then|and then|so)\s+";

/// A word of these lists that only names a thing.
const COMPOUND: &str = r"\b((?:the|an?|our|this|that|my|your|new|of|in|on|to|for|press|click|hit|pressing|clicking|named|called|each|every|its|their|with|and) (?:\w+ )?)(bug|fix|feature|error|issue|incident|crash|cancel|start|stop|pause|resume|continue|status|refactor|refactoring|plan|spec|requirement|story|milestone|scope|hotfix|release|deploy|merge|failure|approve|approval|question|report|support|decision|production|emergency|outage|urgent|defect|exception|undefined|null|backlog|roadmap|sprint|test|log|cause) (button|page|screen|tracker|tab|dialog|modal|menu|form|board|flags?|command|template|banner|label|icon|branch|parser|editor|viewer|module|class|function|widget|view|panel|sidebar|popup|picker|selector|counter|badge|e?mails?|notifications?|webhook|endpoint|adapter|toggle|bar|channel|bot|script|handler|helper|tour|wizard|chart|card|toast|tooltip|checkbox|dropdown|list|link|import|export|messages?|types?|codes?|texts?|toggles|screenshot|form|formatter|table|feed|archive|calendar|planner|map|importer|exporter|colou?r|sound|tag|tags)\b";

struct Grammar {
    orders: Patterns<Sign>,
    told: Patterns<Sign>,
    patterns: Patterns<Pattern>,
}

const PATTERNS: &[(Pattern, &str)] = &[
    (Pattern::Frame, FRAMES),
    (Pattern::Open, r"^(?:{open}|\w+ here|dear \w+)[,:]?\s+"),
    (Pattern::Negated, NEGATED),
    (Pattern::Touches, TOUCHES),
    (Pattern::Subordinate, SUBORDINATE),
    (Pattern::Question, QUESTION),
    (Pattern::Asked, ASKED),
    (Pattern::MaybeWish, MAYBE_WISH),
    (Pattern::WishAnswer, WISH_ANSWER),
    (Pattern::Cuts, CUTS),
    (Pattern::Compound, COMPOUND),
    (Pattern::DoesNot, DOES_NOT),
    (Pattern::NotADefect, NOT_A_DEFECT),
    (
        Pattern::OfScreen,
        r"\b(?:pages?|screens?|buttons?|sidebar|menus?|tabs?|forms?|filters?|dialogs?|modals?|columns?|labels?|colou?rs?|icons?|prices?|pricing|readme|header|footer|dropdown|panel|widget|tables?|subscriptions?)\b",
    ),
    (
        Pattern::NamesSpec,
        r"\b(?:specs?|specification|prd|requirements?|criteri(?:on|a)|non-goals?|definition of done|user stor(?:y|ies)|acs?|ⓡ|ⓓ)\b|\b(?:from|to|into|in|out of) (?:the |our )?(?:plan|scope|road ?map|backlog|milestone)\b",
    ),
    (Pattern::EditsSpec, r"^{edit}\b.*\b{spec}\b"),
    (
        Pattern::PastFailure,
        r"^(?:{open} )*(?:why|how|what|how come|who)\b.*\b(?:did|was|were|had|happened|caused|went|made|could)\b.*\b{fail}\b",
    ),
    (
        Pattern::FromSpec,
        r"\b(?:according to|per|following|based on|from|as in|by) (?:the |our |that )?(?:\w+ )?(?:specs?|specification|plan|prd|ⓓ|ticket)\b|\b(?:code|coding|building)\b",
    ),
    (
        Pattern::Noun,
        r"^\w+ (?:is|was|are|were|has|have|had|will|would|can|could|should|must|does|did|doesn't|isn't|of|says?|seems?|looks?)\b",
    ),
    (
        Pattern::NotBetter,
        r"^let (?:the |our )?(?:users?|people|customers?|me|us|them|admins?|guests?|members?|everyone|anyone)\b|^(?:make|let|get|teach)\b.*\b(?:works?|again|correct\w*|right|properly|stop\w*|not|no longer|actually|consistent|match\w*|accept|happen|possible|sure|wait|really|never|the same|behave)\b",
    ),
    (Pattern::Failure, r"\b{fail}\b"),
    (Pattern::Reason, r"\b(?:why|what|how|who|reason|cause|explain)\b"),
    (
        Pattern::Product,
        r"\b(?:automatic\w*|every time|each time|when(?:ever)? (?:a|an|the|someone|somebody|people|users|they|he|she|it|you)|after \d+|if (?:a|an|the|someone|nobody|no one|users?))\b",
    ),
    (
        Pattern::Down,
        r"\b(?:down|outage|crash\w*|broken|offline|unreachable|500|502|503|dead|(?:can't|cannot) (?:pay|log in|login|order|buy|check ?out))\b",
    ),
    (
        Pattern::Bare,
        r"^(?:{open} )*(?P<verb>[a-z]+) (?:the|an?|more|some|one|it|them|this|that|these|those|all|both|our|my|its|their|every|each|only|two|three)\b",
    ),
    (
        Pattern::NoVerb,
        r"^(?:is|are|was|were|am|be|been|in|on|at|for|with|from|to|by|of|off|out|up|over|under|into|onto|and|or|but|the|an?|this|that|these|those|it|i|we|you|they|he|she|who|which|what|where|when|why|how|there|here|not|no|nor|only|even|also|both|all|some|one|every|each|after|before|like|than|as|about|because|since|until|if|while|has|have|had|does|do|did|will|would|can|could|should|must|may|might|per|via|without|within|during|between|against|through|around|behind|instead|got|made|took|gave|saw|lost|left|came|went|said|told|felt|found|kept|sent|put|\w+(?:s|ed|ing|ly))$",
    ),
    (
        Pattern::SpecOpen,
        r"\b(?:isn't|aren't|not|never|hasn't been|haven't been|almost|nearly|soon|will be|once|until|unless|if|when|before|wait for|still open|unfinished|half)\b(?: [^ ]+){0,4} (?:approved|final|finali[sz]ed|signed|agreed|frozen|ready|done|settled|accepted|decided|reviewed|complete|locked|finished|there)\b|\b(?:draft|to follow|still open|not yet|tbd)\b",
    ),
    (
        Pattern::OfCode,
        r"^\w+ (?:\w+ ){0,4}?(?:code|modules?|class(?:es)?|functions?|methods?|logic|variables?|structs?|quer(?:y|ies)|loops?|names?|one|conditionals|structure|folders?)\b",
    ),
    (
        Pattern::Label,
        r"^((?:\w+ )?)(?:bug|fix|feature|improve|improvements?|cancel|start|stop|pause|resume|status|refactor|plan|hotfix|release|deploy|merge|incident|approve|build|test|report|support|question|continue) ((?:\w+ )?(?:button|page|screen|tracker|tab|dialog|modal|menu|form|board|banner|label|icon|editor|view|panel|sidebar|popup|picker|widget|link|command|flag|e?mail|notification|import|export|list))(?::| (?:is|are|does|do|doesn't|don't|shows?|has|should|could|can't|isn't|keeps|needs|opens|looks|ends|crash\w*|jumps|stays|gets|sends|on|in|of|at)\b)",
    ),
    (
        Pattern::Deferred,
        r"\b(?:the |root )?(?:causes?|why|questions?|post-?mortems?|analysis|explanations?|reasons?|details?|understand\w*)(?: [\w']+){0,4} (?:later|tomorrow|afterwards|can wait|today|another day|some other time|after that|next week)\b",
    ),
    (
        Pattern::CausePast,
        r"\b(?:why|how come|what|who|how)\b(?: [^ ]+){0,6} (?:did|was|were|had|happened|\w{3,}ed|broke|went|made|led|lost|fell|got|sent|took|stood|ran)\b",
    ),
    (
        Pattern::OfPeople,
        r"^(?:{open} )*(?:i|we|you|he|she)(?:'ve|'d)? (?:have |had |already |just )*(?:\w+)\b",
    ),
    (
        Pattern::Meets,
        r"^(?:{open} )*(?:i|we) (?:get|see|got|always get|keep getting|press|click|hit|find|found|end up)\b",
    ),
    (
        Pattern::NotNew,
        r"\b(?:a|an|some|another) (?:\w+ )?(?:hot-?fix|fix|decision|answer|estimate|review|number|list|word|explanation|report|meeting|minute|reason|person|change|break|moment|plan|criterion|requirement|bit|few|couple|while|day|week|look|hand|favou?r|second|feeling|idea|clue|opinion|yes|clear|short|rough|better|faster|more)\b",
    ),
    (
        Pattern::Topic,
        r"\b(?:ⓡ|acceptance criteri\w+|criterion|criteria|requirements?|specs?|specification|prd|non-goals?|definition of done|scope|roadmap|plan)\b",
    ),
    (Pattern::Asking, r"\b(?:please|pls|plz)\b"),
    (
        Pattern::Passive,
        r"^.*\b{code}\b.* (?:needs?|wants?|has|have|ought|should|must) (?:to )?(?:be |get )?(renam|split|extract|mov|merg|refactor|unif|consolidat)(?:ed|ing|ied|ting)?\b",
    ),
];

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| Grammar {
    orders: Patterns::compile(LISTS, ORDERS),
    told: Patterns::compile(LISTS, TOLD),
    patterns: Patterns::compile(LISTS, PATTERNS),
});

impl Grammar {
    /// A clause without its greetings and fillers.
    fn opened<'a>(&self, mut words: &'a str) -> &'a str {
        let Some(open) = self.patterns.get(Pattern::Open) else { return words };
        while let Some(found) = open.find(words) {
            words = &words[found.end()..];
        }
        words
    }

    /// Whether a clause begins with a verb in its base form that no list holds.
    fn is_bare(&self, clause: &str) -> bool {
        let bare = self.patterns.get(Pattern::Bare).and_then(|bare| bare.captures(clause));
        let verb = bare.as_ref().and_then(|found| found.name("verb"));
        verb.is_some_and(|verb| !self.patterns.fits(Pattern::NoVerb, verb.as_str()))
    }

    /// The verb of a request and what follows, and whether it was asked for in a polite frame.
    fn order(&self, clause: &str) -> (String, bool) {
        let opened = self.opened(clause);
        match self.patterns.get(Pattern::Frame).and_then(|frame| frame.find(opened)) {
            Some(found) => (imperative(self.opened(&opened[found.end()..])), true),
            None => (opened.to_owned(), false),
        }
    }
}

/// "turning these into a table" as "turn these into a table".
fn imperative(words: &str) -> String {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    let Some(stem) = verb.strip_suffix("ing").filter(|stem| stem.len() > 2) else {
        return words.to_owned();
    };
    let letters: Vec<char> = stem.chars().collect();
    let doubled = matches!(letters.as_slice(), [.., a, b] if a == b && !"lsz".contains(*a));
    let with_e = [
        "mov",
        "chang",
        "renam",
        "mak",
        "writ",
        "remov",
        "resum",
        "paus",
        "merg",
        "creat",
        "improv",
        "replac",
        "updat",
        "us",
        "isolat",
        "consolidat",
        "combin",
    ];
    let base = if doubled {
        letters[..letters.len() - 1].iter().collect()
    } else if with_e.contains(&stem) {
        format!("{stem}e")
    } else {
        stem.to_owned()
    };
    format!("{base} {rest}")
}

/// Finds the signs of a sentence.
pub(super) fn read(sentence: &Sentence, found: &mut Vec<SignMatch>) {
    let grammar = &*GRAMMAR;
    let patterns = &grammar.patterns;
    let mut words = sentence.words.clone();
    if let Some(compound) = patterns.get(Pattern::Compound) {
        words = compound.replace_all(&words, "${1}ⓥ $3").into_owned();
    }
    if let Some(label) = patterns.get(Pattern::Label)
        && let Some(parts) = label.captures(&words)
    {
        let kept = words[parts[0].len()..].to_owned();
        let joint = if parts[0].ends_with(':') { ":" } else { "" };
        let verb =
            if joint.is_empty() { parts[0].rsplit(' ').next().unwrap_or_default() } else { "" };
        words = format!("{}ⓥ {}{joint} {verb}{kept}", &parts[1], &parts[2]);
    }
    if let Some(deferred) = patterns.get(Pattern::Deferred) {
        words = deferred.replace_all(&words, " ").into_owned();
    }
    let mut note = |sign: Sign, words: &str| {
        found.push(SignMatch { sign, words: words.to_owned() });
    };
    // These are told about the whole message, wherever they stand.
    for (sign, told) in grammar.told.iter() {
        let open = *sign == Sign::SpecReady && patterns.fits(Pattern::SpecOpen, &words);
        if anywhere(*sign) && !open && told.is_match(&words) {
            note(*sign, &words);
        }
    }
    if patterns.fits(Pattern::Topic, &words) {
        note(Sign::SpecTopic, &words);
    }
    let question = sentence.asks || patterns.fits(Pattern::Question, &words);
    let mut ordered = false;
    for (clause, joint) in clauses(patterns, &words) {
        let clause = clause.as_str();
        if patterns.fits(Pattern::Negated, clause) || joint == Joint::Except {
            if patterns.fits(Pattern::Touches, clause) {
                note(Sign::NoChange, clause);
            }
            continue;
        }
        if joint == Joint::Subordinate || patterns.fits(Pattern::Subordinate, clause) {
            continue;
        }
        let (order, polite) = grammar.order(clause);
        if let Some(sign) = sign_of_order(grammar, &order) {
            ordered = true;
            // "can we start the sprint?" may only ask whether it is allowed.
            let allowed = polite && sentence.asks && clause.contains("we ");
            // "pause it when a call comes in" is what a program is to do.
            let product = patterns.fits(Pattern::Product, &words);
            let steers =
                matches!(sign, Sign::Command | Sign::GoOn | Sign::Status | Sign::Restructure);
            if steers && (allowed || product) {
                note(Sign::Work, clause);
            } else {
                note(sign, clause);
            }
            continue;
        }
        if polite && (sentence.asks || patterns.fits(Pattern::Asked, &words)) {
            note(Sign::Work, clause);
            continue;
        }
        let mut told_any = false;
        let of_people =
            patterns.fits(Pattern::OfPeople, clause) && !patterns.fits(Pattern::Meets, clause);
        for (sign, told) in grammar.told.iter().filter(|(sign, _)| !anywhere(*sign)) {
            let excused = *sign == Sign::Defect && of_people
                || *sign == Sign::Create && patterns.fits(Pattern::NotNew, clause)
                || *sign == Sign::Hotfix && sentence.asks;
            if !excused && told.is_match(clause) {
                told_any = true;
                note(*sign, clause);
            }
        }
        if grammar.is_bare(clause) || !told_any && patterns.fits(Pattern::Asking, clause) {
            note(Sign::Work, clause);
        }
        if let Some(passive) = patterns.get(Pattern::Passive)
            && passive.is_match(clause)
        {
            note(Sign::Restructure, clause);
        }
        if patterns.fits(Pattern::DoesNot, clause)
            && !patterns.fits(Pattern::NotADefect, clause)
            && !told_any
        {
            note(Sign::Defect, clause);
        }
    }
    if patterns.fits(Pattern::PastFailure, &words) {
        note(Sign::Investigate, &words);
    } else if (question || patterns.fits(Pattern::Asked, &words))
        && (patterns.fits(Pattern::CausePast, &words)
            || patterns.fits(Pattern::Failure, &words) && patterns.fits(Pattern::Reason, &words))
        && !patterns.fits(Pattern::WishAnswer, &words)
    {
        note(Sign::Cause, &words);
    } else if !ordered && (sentence.asks || patterns.fits(Pattern::Asked, &words)) {
        let wish = patterns.fits(Pattern::MaybeWish, &words)
            && !patterns.fits(Pattern::WishAnswer, &words)
            || patterns.fits(Pattern::Down, &words);
        note(if wish { Sign::Work } else { Sign::Ask }, &words);
        note(Sign::Query, &words);
    }
}

/// Whether a sign is told about the whole message, wherever it stands.
fn anywhere(sign: Sign) -> bool {
    matches!(
        sign,
        Sign::Calm
            | Sign::Urgent
            | Sign::Production
            | Sign::Harm
            | Sign::Over
            | Sign::NoChange
            | Sign::SpecReady
            | Sign::SkipPlan
            | Sign::SameBehaviour
            | Sign::Status
    )
}

/// What the verb of a request asks for.
fn sign_of_order(grammar: &Grammar, order: &str) -> Option<Sign> {
    if grammar.patterns.fits(Pattern::Noun, order) {
        return None;
    }
    if grammar.patterns.edits_spec(order) {
        return Some(Sign::SpecChange);
    }
    let sign = grammar
        .orders
        .iter()
        .find(|(_, pattern)| pattern.is_match(order))
        .map(|(sign, _)| *sign)?;
    let not_better = grammar.patterns.fits(Pattern::OfCode, order)
        || grammar.patterns.fits(Pattern::NotBetter, order);
    let other = sign == Sign::Improve && not_better
        || sign == Sign::Create && grammar.patterns.fits(Pattern::NotNew, order);
    Some(if other { Sign::Work } else { sign })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    First,
    And,
    Subordinate,
    Except,
}

/// The clauses of a sentence, each with what joins it to the one before.
fn clauses(patterns: &Patterns<Pattern>, words: &str) -> Vec<(String, Joint)> {
    let mut found = Vec::new();
    let Some(cuts) = patterns.get(Pattern::Cuts) else { return found };
    let (mut from, mut joint) = (0, Joint::First);
    for cut in cuts.find_iter(words) {
        let clause = words[from..cut.start()].trim();
        if !clause.is_empty() {
            found.push((clause.to_owned(), joint));
        }
        let with = cut.as_str().trim();
        joint = match with {
            "because" | "so that" | "whenever" | "when" | "while" | "until" | "although"
            | "though" | "unless" | "before" | "after" | "as soon as" | "once" | "since" | "if" => {
                Joint::Subordinate
            }
            "instead of" | "rather than" | "without" => Joint::Except,
            _ => Joint::And,
        };
        from = cut.end();
    }
    let clause = words[from..].trim();
    if !clause.is_empty() {
        found.push((clause.to_owned(), joint));
    }
    found
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::super::signs::expand;
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let all = ORDERS.iter().chain(TOLD).map(|(_, rule)| rule);
        for rule in all.chain(PATTERNS.iter().map(|(_, rule)| rule)) {
            assert!(Regex::new(&expand(LISTS, rule)).is_ok(), "{rule}");
        }
    }
}
