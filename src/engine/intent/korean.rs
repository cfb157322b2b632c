//! The grammar of Korean requests, questions and complaints: stems, particles and endings.

use std::sync::LazyLock;

use super::signs::{Pattern, Patterns, Sign, SignMatch};
use super::text::Sentence;

/// Classes of words and endings.
const LISTS: &[(&str, &str)] = &[
    // Between a noun and 하다, or before an auxiliary verb.
    (
        "gap",
        r"(?:도|만|을|를|은|는|좀|까지|부터|이나|랑)?\s?(?:(?:좀|한\s?번|한번|다시|바로|먼저|일단|우선|꼭|같이|싹|조금|다|전부|빨리|얼른|이제|그냥|지금|잘|더|만|계속|쭉|좀더)\s?)*",
    ),
    // After the connective form of a verb (고쳐, 만들어): somebody is asked.
    (
        "give",
        r"{gap}(?:주(?:세|시|실|심|십|쉬|라|면\s?(?:좋|감|됩|돼|되|안)|고|겠|죠|셨|셔|었|길|기\s?바|여|$)|줘|줄래|줄\s?(?:수|래)|달라|달래|드려|봐\s?주|놔|놓|둬|두|봐|보자|보죠|볼까|야\s?(?:함|해|할|합|돼|되|겠)|라$|요$|요\s|부탁|$)",
    ),
    // After the noun of a verb in 하다 (수정, 추가): somebody is asked.
    (
        "do",
        r"{gap}(?:해|하여|시켜|하셔|들어가|진행해)?\s?(?:주(?:세|시|실|심|십|쉬|라|면\s?(?:좋|감|됩|돼|되|안)|고|겠|죠|셨|셔|었|길|기\s?바|여|$)|줘|줄래|줄\s?(?:수|래)|부탁|바랍|바라|바람|요청|요망|필요|합시다|하자|하죠|하시죠|하시면\s?(?:됩|돼|되)|하면\s?(?:됩|돼|됨|될|좋)|했으면|하세|하십|해요?$|해라|해야|해봐|해\s?봐|해봅|해둬|해놔|해\s?두|해\s?놓|할까|할게|하겠|합니다$|하고$|하고요$|하구$|한\s?다음|한\s?뒤|하는\s?(?:걸로|게\s?좋|거로)|하는\s?쪽|드립|드려|ㄱㄱ|ㄱ$|고고|$)",
    ),
    (
        "spec",
        r"스펙|명세|기획서|기획안|계획서|요구\s?사항|요건|수락\s?기준|수용\s?기준|인수\s?기준|완료\s?기준|완료\s?조건|인수\s?조건|수용\s?조건|(?:^|[^a-z])ac(?:$|[^a-z])|prd|로드맵|마일스톤|(?:^|[^히])스토리(?:$|[^지북])|비목표|범위|계획|플랜|plan|기획|결정\s?사항|결정|ⓡ|ⓓ|설계서|설계안|정의서|백로그",
    ),
    (
        "code",
        r"코드|모듈|클래스|함수|메서드|메소드|패키지|서비스|컨트롤러|컴포넌트|로직|핸들러|변수|타입|인터페이스|쿼리|반복문|조건문|유틸|util|중복된|중복\s?(?:코드|로직|함수|제거|검증|구현|부분)|폴더|디렉토리|디렉터리|파일|상수|매직\s?넘버|계층|레이어|래퍼|파서|훅|hook|싱글톤|전역|의존성|구조|라이브러리|crate|repository|handler|import|콜백|if문|sql|ⓒ|ⓕ|네이밍|이름|클라이언트|인스턴스|객체|스키마|enum|struct|매크로|헬퍼|스크립트|설정\s?값",
    ),
    (
        "big",
        r"기능|화면|페이지|봇|연동|api|도구|툴|시스템|대시보드|커맨드|명령어|서비스|앱|모드|로그인|포털|사이트|휴지통|감사\s?로그|인증|챗봇|관리자|어드민|채팅|구독|웹훅|플러그인|통계",
    ),
    (
        "broken",
        r"깨(?:져|지|짐|졌)|오류|버그|오타|먹통|튕|죽(?:어|는|음|네)|날아가|날라가|잘려|잘리|사라(?:져|지|짐|집)|두\s?(?:번|개|통)씩|중복\S*\s?(?:나|떠|저장|표시|등록|발송)|이상하게|틀(?:려|렸|림|리|립)|누락|무한|겹쳐|겹치|겹침|깜빡|404|500|502|503|ⓔ|재현|멈춰\s?(?:버|있|요)|멈춥|멈춤|먹지|음수|nan|undefined|null|빈\s?화면|흰\s?화면|백지|뒤죽박죽|어긋|잘못\s?(?:나|들|표시|계산|저장|된|돼|되|찍|보)|엉뚱|밀려|크래시|뻗|뻗어|터져|터지|터짐|터졌|다운|안\s?맞|뒤바뀌|반대로|거꾸로|하루\s?(?:전|씩|밀)|에러(?:가|남|나|뜸|떠|요)|강제\s?종료|다르게\s?나",
    ),
    (
        "cannot",
        r"안\s?(?:돼|되|됨|된다|됩|나와|나옴|나옵|나오|떠|뜨|뜸|뜹|보여|보이|보임|맞|눌|닫|열|먹|와요|옴|옵니|들어|올라|바뀌|바뀜|없어|켜|꺼|넘어|가요|갑|감|움직|풀|불러|저장|오|잡|지워|줄|늘|적용|내려|작동|동작|로딩|사라|찍)|못\s?(?:하|들|불|찾|읽|써|쓰|받|가|열)|(?:되|하|나|뜨|오|가|보이|열리|닫히|눌리|바뀌|사라지|저장되|먹히|맞|풀리|작동하|동작하|내려가)지\s?(?:가\s?)?않",
    ),
    (
        "ask",
        r"(?:나|까|가|는지|은지|ㄴ지|인지|한지|된지|될지|을지|던지|할지|던가|건가|인가|거예|거에|거|거죠|거지|죠|지|니|냐|여|래|데)요?$|(?:거임|건지|인지|는지|을까|일까|될까|할까|나여|가여|는거임|는건지|음|임|있음|됨|맞음|맞지|맞죠|하지|되지)$",
    ),
    ("why", r"왜|뭐|뭔|무엇|무슨|언제|어디|누가|누구|누군|어떻게|어떤|몇|얼마|어느|뭘|어째서"),
];

/// What is seen in a clause.
const CLAUSE: &[(Sign, &str)] = &[
    // Steering
    (
        Sign::GoOn,
        r"^(?:네|넵|예|응|좋아요|좋습니다|ㅇㅋ|ok|오케이|그럼|자|이제|ㅇㅇ|확인했습니다|그래요?)?[, ]*(?:계속|이어서|마저|이어|재개|쭉|하던\s?거|하던\s?대로|다시)\s?(?:(?:쭉|진행|작업|해|하|가|계속)\s?)*{do}",
    ),
    (
        Sign::GoOn,
        r"(?:계속|이어서|마저|멈춘\s?\S+\s?다시|멈췄던\s?\S+(?:\s\S+)?\s?다시|중단(?:한|했던|된|됐던)\s?\S+(?:\s\S+)?\s?다시|하던\s?\S+(?:\s\S+)?)\s?(?:다시\s?)?(?:(?:진행|작업|작성|개발|구현|정리|마무리|가|수행|이어|시작|계속)\s?)?{do}",
    ),
    (
        Sign::GoOn,
        r"재개{do}|이어\s?(?:가|나가|서\s?하){give}|이어가\s?{give}|(?:계속|마저|이어서|이어)\s?(?:하|해|진행하|진행해|가|작업하|작업해)(?:시면|면\s?(?:됩|돼|되)|세요|도\s?(?:됩니다|돼|되요|되세)|주|줘|자|죠|시죠|십|라|요|셔|시고|$)|다시\s?진행{do}",
    ),
    (
        Sign::GoOn,
        r"(?:데|곳|부분|지점)(?:에서)?(?:부터)?\s?(?:다시\s?)?(?:이어|계속|마저|ㄱㄱ|시작)",
    ),
    (
        Sign::Status,
        r"(?:진행|작업|스프린트|백로그|요청|대기|현재)\s?(?:중인\s?)?(?:상황|현황|상태|사항|목록|건|작업|거|경과|내역|보드|큐|업무|일|정도|률)(?:들)?(?:이|은|는|을|를|도|만|부터)?\s?(?:전체\s?)?{gap}(?:공유|보여|알려|정리|요약|궁금|어때|어떻|어떤|뽑아|확인|리스트|말해|볼|보고|브리핑|띄워|$)",
    ),
    (
        Sign::Status,
        r"어디까지\s?(?:진행|됐|되|했|왔|하)|얼마나\s?(?:진행|됐|남았|왔)|(?:지금|다들|현재|요즘)\s?(?:다들\s?)?(?:뭐|무슨\s?(?:일|작업))\s?(?:하|작업|진행)|진행\s?(?:상황|상태|현황|률)(?:은|이|이나|좀)?\s?(?:좀\s)?(?:어떤|어때|어떻|어디|궁금|공유|알려|요|$)|(?:스프린트|백로그)\s?(?:현황|상태|진행)|남은\s?(?:todo|작업|일|태스크|할\s?일|티켓)|(?:작업|ⓘ|요청|스프린트|건)(?:은|는|이|가)?\s?(?:지금\s|현재\s)?(?:어떤\s?상태|상태가?\s?어때|상태\s?어떤)|^현황|열려\s?있는\s?(?:요청|작업)|(?:잘\s?)?(?:돼|되어|되)\s?가(?:요|나|고\s?있)",
    ),
    (
        Sign::Command,
        r"(?:ⓒ|ⓠ|\S+)\s?액션(?:을|를|도|만|은|좀)?\s?{gap}(?:실행|돌려|돌리|트리거|시작|수행|태워|걸어)",
    ),
    (Sign::Build, r"(?:개발|구현|코딩|퍼블리싱)\s?(?:바로\s?)?(?:들어가|착수|시작){do}"),
    (
        Sign::Command,
        r"(?:^|\s)(?:스프린트|작업|요청|ⓘ|태스크|티켓|todo|건|거|pr|머지|실행|전부|모두|다|전체|에이전트|개발자|qa|리뷰|게이트|큐|이슈|런|빌드|\S+\s?(?:작업|요청|건|리팩토링|개편|개선|이슈))(?:들)?(?:을|를|은|는|도|만|이|부터)?\s?(?:지금\s|바로\s|일단\s|잠시\s|잠깐\s|당분간\s|우선\s|이제\s|그냥\s|좀\s|모두\s|전부\s|다\s)*(?:시작|중지|중단|정지|일시\s?정지|취소|보류|승인|철회|홀딩|스탑|스톱|종료|마감|반려|머지|병합|대기|폐기|스탑){do}",
    ),
    (
        Sign::Command,
        r"(?:작업|요청|건|ⓘ|스프린트|전부|모두|다|거|실행|리팩토링|개발)(?:은|는|을|를|도|이)?\s?(?:\S+\s){0,2}?(?:멈춰|멈추고|세워|접어|접고|끊어|내려놔|미뤄|닫아|덮어\s?둬){give}|(?:^|\s)없던\s?(?:걸|일|것으)로|^(?:일단\s|잠깐\s|잠시\s)*멈춰{give}",
    ),
    (
        Sign::Command,
        r"^(?:일단\s?|잠깐\s?|잠시\s?|우선\s?|지금\s?|다\s?|전부\s?|모두\s?)*(?:승인|중지|중단|정지|스탑|멈춰|보류|취소|대기|머지|반려|스톱|거절)(?:합니다|해요|해\s?주\S*|해줘|할게요|하겠습니다|요|이요|ㄱㄱ|드립니다|부탁\S*|해|하세요|하자|)$",
    ),
    (Sign::Command, r"(?:머지|배포|릴리스|릴리즈){do}"),
    // Mending
    (
        Sign::Hotfix,
        r"(?:핫픽스|hotfix)(?:로|를|가|좀|하나)?\s?(?:{do}|나가야|내보내|올려|필요|급|바로)|긴급\s?(?:패치|수정|핫픽스|복구){do}",
    ),
    (
        Sign::Investigate,
        r"(?:원인|이유|경위|왜|무슨\s?일|어디서|어떻게|누가|누수|장애|사고|배경|과정|경로|뭐가)\S*\s?(?:\S+\s?){0,5}?(?:조사|파악|분석|규명|추적|확인|파헤|밝혀|알아\s?(?:봐|내)|찾아|살펴|짚어|정리|진단|들여다|알아보|재구성){do}",
    ),
    (
        Sign::Investigate,
        r"(?:밝혀|파헤쳐|파악해|규명해|추적해|조사해){give}|(?:포스트\s?모템|사후\s?분석|사고\s?보고서|장애\s?보고서|원인\s?분석|근본\s?원인|rca|장애\s?리포트|회고\s?문서|경위서|원인\s?조사|원인\s?파악)",
    ),
    (
        Sign::Investigate,
        r"(?:조사|원인\s?파악|원인\s?분석)(?:만|까지만|부터|먼저)?{do}|분석(?:만|까지만){do}|(?:조사|분석|파악|추적|규명)해서$",
    ),
    (
        Sign::Fix,
        r"(?:고쳐|고치|바로잡아|손봐|해결해|땜질해){give}|잡아\s?(?:주|줘)|고치(?:자|죠|면\s?(?:됩|돼|좋)|셔야|십시)|고칠\s?(?:수|까)",
    ),
    (Sign::Fix, r"(?:수정|픽스|fix|버그\s?픽스|해결|수리|디버깅|조치){do}"),
    // Building
    (
        Sign::SkipPlan,
        r"(?:플래닝|계획|기획|리서치|설계|논의|스펙|토론|회의|검토|분석|조사|기획\s?단계|research|planning)\S*\s?(?:\S+\s)?(?:건너|생략|스킵|패스|없이|ㄴㄴ|빼고|필요\s?없|안\s?해도|하지\s?말|말고|그만|됐고|더\s?할\s?(?:거|것|게|필요))",
    ),
    (
        Sign::Build,
        r"(?:구현|개발|코딩|퍼블리싱|코드\s?작성|작성|제작|빌드){do}|(?:개발|구현|코딩|작업)\s?(?:들어가|착수|시작|진행){do}|(?:코드로\s?)?옮기기만|코드로\s?옮겨{give}|(?:개발|구현|코딩)만\s?하|(?:코드|구현)만\s?(?:작성|짜|하)",
    ),
    (
        Sign::Build,
        r"(?:그대로|대로|대로만|만)\s?(?:\S+\s)?(?:만들어|짜|구현해|개발해|옮겨|붙여){give}|그냥\s?만들어{give}|바로\s?만들어{give}",
    ),
    // What stands there is to say something else.
    (
        Sign::Improve,
        r"ⓠ(?:을|를|이|가)?\s?(?:(?:이제|모두|전부|다)\s)?ⓠ(?:으로|로)\s?(?:(?:모두|전부|다)\s)?(?:(?:바꿔|바꾸어){give}|(?:변경|교체|치환|수정|대체){do}|바꾸(?:자|죠)|바꿉시다)",
    ),
    (
        Sign::Restructure,
        r"(?:리팩토링|리팩터링|리팩토|리팩터|모듈화|구조\s?개편|구조\s?정리|코드\s?정리|폴더\s?정리|공통화|추상화|캡슐화|구조\s?개선|재구성|파일\s?정리|네이밍\s?정리){do}|리팩토링\s?(?:요청|해)",
    ),
    (
        Sign::Restructure,
        r"{code}\S*\s(?:\S+\s){0,6}?(?:(?:나눠|나누어|쪼개|합쳐|옮겨|빼|꺼내|지워|바꿔|바꾸어|풀어|묶어|줄여|걷어내|정리해|모아|떼어내|떼|뽑아|뜯어내|분리해|통일해|갈아){give}|(?:분리|추출|통합|통일|이동|제거|삭제|정리|변경|교체|분할|치환|병합|전환|이관|일원화|단순화){do}|(?:나누|쪼개|합치|옮기|빼|지우|바꾸|묶|뽑|모으)(?:자|죠|시죠|는\s?걸로|면\s?(?:좋|됩|돼))|(?:나눕|쪼갭|합칩|옮깁|뺍|지웁|바꿉|묶읍)시다|바꿔주실|묶는\s?걸로)",
    ),
    (
        Sign::Restructure,
        r"(?:상수|함수|모듈|클래스|훅|파일|컴포넌트|패키지|서비스|레이어|계층|유틸|공통\S*|repository|헬퍼|enum|인터페이스|변수)(?:로|으로|에|별로|단위로)\s?(?:\S+\s){0,3}?(?:(?:나눠|쪼개|합쳐|옮겨|빼|꺼내|바꿔|묶어|모아|떼어내|뽑아|빼내){give}|(?:분리|추출|통합|통일|이동|분할|이관|정리|교체){do})",
    ),
    (
        Sign::Improve,
        r"(?:테스트|테스트\s?케이스|커버리지|로그(?:를|도|는|좀|\s)|주석|문서|안내문|설명|툴팁|에러\s?메시지)\S*\s?(?:\S+\s){0,3}?(?:(?:추가|작성|보강|보완){do}|(?:넣어|늘려|써|적어|채워|짜|달아){give})",
    ),
    (
        Sign::Work,
        r"(?:코드|구조|로직|모듈|함수|클래스|쿼리|변수|네이밍|중복|의존성|컴포넌트|메서드|파일)\S*\s.*(?:개선|최적화|단축|보완|강화|다듬|줄여|늘려|깔끔|단순|간결)",
    ),
    (
        Sign::Improve,
        r"(?:개선|최적화|보강|확장|튜닝|단축|다듬기|업그레이드|고도화|보완|강화|폴리싱){do}|(?:다듬어|다듬|늘려|줄여|높여|넓혀|키워|올려|낮춰|당겨){give}|다듬(?:자|읍)",
    ),
    (Sign::Work, r"(?:{code}).*\S+(?:게|하게)\s(?:해|만들어|바꿔|고쳐|정리|다듬어|바꾸|변경)"),
    (
        Sign::Improve,
        r"(?:더|좀|조금|약간|덜|훨씬)\s?(?:더\s?|덜\s?)?\S+(?:게|하게|히|스럽게)\s?(?:\S+\s)?(?:해|만들어|바꿔|보여|고쳐|표시|다듬어|할\s?수|안\s?될|될까|됐으면|되면|나오|보이)",
    ),
    (
        Sign::Improve,
        r"(?:빠르게|빨리|크게|작게|짧게|쉽게|부드럽게|친절하게|예쁘게|깔끔하게|자연스럽게|선명하게|눈에\s?띄게|가볍게|단순하게|간결하게|명확하게)\s?(?:\S+\s)?(?:해|만들어|바꿔|안\s?될|될까|됐으면|할\s?수|고쳐|다듬어)",
    ),
    (
        Sign::Create,
        r"(?:{big})(?:이|가|도|하나)?\s?(?:하나\s?|새로\s?|꼭\s?)?있(?:으면|었으면)\s?(?:좋|합|편|해)",
    ),
    (Sign::Work, r"있(?:으면|었으면)\s?(?:좋|합|편|해)|(?:었|했|됐)으면\s?(?:좋|합|해)"),
    (
        Sign::Work,
        r"(?:쪼개|나누|합치|옮기|분리하|빼|묶|정리하|통일하|바꾸|지우)면\s?(?:더\s)?(?:좋|편|낫)",
    ),
    (Sign::Improve, r"(?:더\s?)?(?:좋을|좋겠|편할|나을|편하겠|낫겠)\S*|더\s?좋\S*"),
    (
        Sign::Improve,
        r"(?:기존|현재|지금\s?있는|있는)\s\S+.*(?:추가|넣어|보여|표시|지원|나오게|되게|포함){do}",
    ),
    (
        Sign::Create,
        r"(?:{big})\S{0,2}\s(?:\S+\s){0,3}?(?:(?:추가|신설|개발|도입|구축|제작|연동|지원){do}|(?:만들어|넣어|달아|붙여|띄워){give}|(?:만들|넣|달)(?:자|죠|었으면)|만듭시다)|(?:새로|신규(?:로)?|새|하나)\s(?:\S+\s){0,3}?(?:(?:추가|신설|개발|도입|구축|제작){do}|만들어{give}|만들(?:자|죠|었으면))",
    ),
    (
        Sign::Work,
        r"(?:컬럼|열|필드|옵션|필터|정렬|파라미터|링크|라벨|버튼|항목|칸)\S{0,2}\s?(?:\S+\s){0,2}?(?:도\s)?(?:추가{do}|(?:넣어|달아|붙여){give})",
    ),
    (
        Sign::Work,
        r"\S+(?:에|에도|에는|에서도)\s(?:\S+\s){0,4}?(?:추가{do}|(?:넣어|달아|붙여|띄워){give}|(?:넣|달)자)",
    ),
    (Sign::Create, r"(?:추가|신설|신규\s?개발|개발|도입|구축|연동|신규\s?제작|제작|지원|제공){do}"),
    (
        Sign::Create,
        r"(?:만들어|넣어|달아|붙여|지어|띄워|세워|마련해){give}|(?:만들|넣|달|붙이)(?:자|죠|시죠|으면\s?(?:좋|합)|면\s?(?:좋|합)|고\s?싶|려고\s?(?:합|해))|만들고\s?싶|만듭시다|넣읍시다|만들어\s?보",
    ),
    (
        Sign::Create,
        r"(?:기능|화면|페이지|봇|연동|api|도구|툴|시스템|메뉴|대시보드|커맨드|명령어|서비스|앱|모드|발송|알림|방법|수단|로그인|결제)\S{0,2}\s?(?:하나\s?)?(?:이|가|도)?\s?(?:꼭\s?|새로\s?)?(?:필요|있었으면|있으면\s?(?:좋|합|해)|있어야|원합|원해|생겼으면|갖고\s?싶|요청)",
    ),
    // Telling
    (Sign::Defect, r"{broken}"),
    (Sign::Defect, r"{cannot}"),
    (
        Sign::Work,
        r"(?:느려|느리|느림|불편|헷갈|복잡|답답|딱딱|작아|못생|지저분|번거|애매|아쉬|투박|촌스|밋밋|투박|빡빡)\S*",
    ),
    (Sign::Work, r"필요(?:해|합|하|함)|고\s?싶|(?:없어요|없습니다|없음)$"),
    (
        Sign::Work,
        r"(?:바꿔|바꾸어|옮겨|나눠|쪼개|합쳐|지워|빼|숨겨|돌려|보내|써|적어|올려|내려|가려|막아|열어|걸어|묶어|읽어|기억해|보여|띄워){give}|(?:변경|삭제|제거|이동|교체|적용|반영|정리|처리|표시|등록|설정|전환|분리|통합|작성|갱신|업데이트|업뎃|진행|작업|마무리|복구|롤백|점검|검토|확인|세팅|설치|제외|포함|조정|통일){do}|(?:바꾸|옮기|빼|지우|합치|나누|숨기|돌리|쓰)(?:자|죠|시죠)|(?:뺍|바꿉|옮깁|합칩|나눕)시다|바꿔주|있었으면|했으면",
    ),
];

/// What is seen in the sentence as a whole.
const WHOLE: &[(Sign, &str)] = &[
    (
        Sign::Over,
        r"(?:복구|해결|처리|조치|대응|환불|수정|롤백|정상화|패치)\S{0,2}\s?(?:\S+\s)?(?:이미|다\s?|모두\s?|전부\s?)?(?:했|됐|되었|끝|완료|마쳤|된\s?상태)|(?:이미|지금은|현재는|이젠|이제는)\s?(?:\S+\s){0,2}?(?:정상|복구|괜찮|해결|돌아|멀쩡|잘\s?되|끝)|수정(?:은|이)?\s?(?:\S+\s)?(?:저희|우리|제가|필요\s?없|나중)|(?:원인|조사|이유|파악|분석)만|정상입니다|정상화|저절로",
    ),
    (
        Sign::Calm,
        r"급(?:한\s?(?:건|거|것|일)은?|하지(?:는|도)?|한\s?문제는)\s?(?:아니|아님|않|안)|급하진\s?않|안\s?급|시간\s?(?:되|날|있|나)\S*|천천히|여유\s?있|심각하진|크리티컬\S*\s?(?:아니|아님|않)|한가하|스테이징|개발\s?서버|로컬(?:에서)?|테스트\s?서버|사소|나중에\s?(?:해도|하셔도)|당장은\s?아니",
    ),
    (
        Sign::Production,
        r"운영|라이브|실\s?서버|실\s?서비스|프로덕션|상용|(?:^|[^a-z])prod|본\s?서버|실제\s?서비스|실사용자|(?:고객|유저|회원|사용자|손님|환자|기사|매장|점주|학생)(?:님|들|분)*(?:이|가|한테|에게|께|들이|들한테)",
    ),
    (
        Sign::Harm,
        r"전체\s?(?:\S+\s)?(?:사용자|유저|고객|회원|서비스|장애|매장)|(?:모든|전)\s?(?:\S+\s)?(?:유저|고객|사용자|회원|요청|주문|서비스|매장|지점|환자|학생|기사)|전부|아무도|전면|다들\s?(?:안|못)|아예|하나도|폭주|난리|빗발|쇄도|노출되|유출|남의|다른\s?(?:사람|고객|회원|유저|환자)|두\s?번씩|중복\s?(?:결제|발송|청구|출금)|다운|터졌|터짐|뻗었|먹통|마비|접속이?\s?(?:안|불가)|결제(?:가|도)?\s?(?:\S+\s)?(?:안|불가|막)|매출|손실|돈이",
    ),
    (
        Sign::Urgent,
        r"긴급|급해|급합|급함|급하게|당장|지금\s?바로|즉시|빨리|빠르게\s?(?:조치|복구|대응)|asap|바로\s?(?:조치|복구|막|내려|고쳐|롤백)|살려|살리|복구(?:부터|해|\s?부탁|\s?먼저|가\s?먼저|좀)|막아|내려야|내려\s?주|최대한\s?빨|초비상|비상|지금\s|방금|(?:아침|시|분|새벽)부터|실시간으로|있습니다\s?지금",
    ),
    (
        Sign::SpecReady,
        r"(?:스펙|명세|기획|기획서|계획|계획서|설계|디자인|시안|리뷰|합의|승인|ac|요구\s?사항|피그마|ⓓ|와이어프레임|api|내용|협의|검토|컨펌|확정|논의|정책|prd|문서)\S{0,3}\s?(?:\S+\s){0,3}?(?:확정|승인|끝|통과|완료|합의|마쳤|나왔|났|정해|컨펌|다\s?있|있으니|픽스|올려뒀|정리\s?(?:됐|되)|사인|동의|잠겼|동결)|확정\s?(?:본|났|됐|되|된)|승인(?:된|났|도\s?났|받은|됐)|합의된|합의\s?(?:끝|됐|된|본)|정해진\s?(?:대로|거)|(?:스펙|명세|기획서|계획|시안|문서|ⓓ|피그마|디자인|plan|설계|티켓|이슈|적힌|써\s?있는|합의된|나온|정한|정리된|합의한|결정된|목업|와이어프레임)\S{0,3}\s?(?:에\s?적힌\s?)?(?:그대로|대로)|(?:이대로|그대로만|그대로)\s?(?:개발|구현|코드|코딩|만들|옮|짜|퍼블|진행|작업)",
    ),
    (
        Sign::SameBehaviour,
        r"(?:동작|기능|결과|로직|출력|응답|동작은|api)\S{0,2}\s?(?:그대로|동일|유지|똑같|변화\s?(?:는\s?)?없|변경\s?(?:은\s?)?없|안\s?바뀌|바뀌면\s?안|같아야|건드리지)|기능\s?변(?:화|경)(?:은|는)?\s?없",
    ),
    (
        Sign::Ask,
        r"궁금|여쭤|여쭙|질문(?:이요|이\s?있|있|인데|드|드립|하나|$)|문의드|알고\s?싶|의견\s?(?:좀|만|을|이|부탁|주|들려|듣)|(?:설명|알려|말씀|답변|대답|가르쳐|조언|귀띔){give}|(?:설명|답변|조언|의견){do}|(?:알려|설명해|말해|가르쳐|들려)\s?(?:만\s?)?(?:주|줘|줄)|어떻게\s?생각|이해가\s?안\s?(?:가|돼|되)|모르겠",
    ),
];

/// A negated deed: nobody is asked to do it.
const NEGATED: &str = r"(?:(?:\S+(?:은|는|을|를|도)\s)?(?:아직\s|더\s|절대\s|굳이\s|따로\s|지금은\s|괜히\s|다시\s|새로\s|계속\s|이어서\s|마저\s)*)?\S*지\s?(?:는|도|를)?\s?(?:말|마(?:세|시|라|십|$|\s|요|여|셈|셔)|않(?:아도|으셔|게|고|아))\S*|(?:\S+(?:은|는|을|를)\s)?\S+\s?말고|\S+(?:\s?없이)|(?:\S+\s)?\S*(?:은|는|건|게|것은|거|거는|자는\s?건|달라는\s?건|하자는\s?건)\s?(?:\S+\s)?(?:아니|아님|아녜|아닙)\S*|\S+\s?ㄴㄴ|\S+(?:은|는|이|가|도|할|하실)?\s?(?:필요|필요는|필요도|필요가|이유는)\s?없\S*|(?:\S+(?:은|는|을|를|도)?\s)?안\s?(?:해도|하셔도|바꿔도|고쳐도|건드려도|만들어도)\S*(?:\s(?:돼|되|됩|됨|괜찮)\S*)?|(?:바꿀|고칠|수정할|추가할|할|변경할)\s?(?:건|거|것은|생각은|계획은|일은)\s?(?:아님|아니|없)\S*|(?:제가|저희가|우리가|직접|나중에\s?제가)\s(?:\S+\s){0,3}?\S*(?:할게|할\s?거|할거|하겠|할\s?예정|합니다|고칠게|수정할|처리할|바꿀게|볼게|실행할)\S*|\S*(?:수정|구현|작업|개발|실행|변경)(?:은|는)\s(?:저희|제가|우리|나중|다음|저희가|직접|추후|아직)\S*(?:\s\S+){0,4}";
const TOUCHES: &str = r"수정|변경|고치|고쳐|고칠|바꾸|바꿔|바꿀|손대|손\s?대|건드리|건드려|구현|코드|실행|작업|추가|개발|픽스|만들|삭제|지우|하자|해달|해\s?달|배포|머지|조치|할\s?(?:건|거)";
/// The end of a sentence that asks whether somebody would do something.
const POLITE: &str = r"(?:해|어|아|여|겨|려|쳐|춰|꿔|눠|개|빼|내|워|켜|와|줘|봐)\s?(?:주|줄|달)\S*\s?(?:수\s?있|래|나요|실래|시겠|실까|시면|십|세)|(?:안\s?될까|안\s?되나|안될까|안되나|안\s?되겠|되면\s?안|면\s?안\s?될|면\s?안\s?되)\S*$";
/// It may be a wish as well as a question.
const MAYBE: &str = r"(?:꼭|매번|굳이|일일이).*야\s?\S*(?:나요|가요|까요)$|는\s?(?:게|거|것이|건)\s?(?:맞|정상|의도)\S*$|(?:것|거)\s?같은데|[가-힣]\s?수\s?(?:는|가|도)?\s?(?:있|없)(?:을까|나|는지|을지|을까요|나요|어요|음|죠)\S*$|(?:ㄹ까|할까|볼까|뺄까|바꿀까|만들까|넣을까|둘까|갈까|쓸까|옮길까|나눌까|시작할까|좋을까|어떨까|낫지|않을까)요?$|(?:어때|어떨까|어떤가|괜찮을까)요?$";
/// A question about what would be, or of a kind that a wish never has.
const SURE_QUESTION: &str = r"(?:려면|하려면|는\s?데|자면|다면|한다면|는데에)\s?(?:\S+\s){0,4}?(?:얼마|며칠|몇|어느|오래|걸리|뭐|무엇|어떻게|비용)|{why}";
const UI: &str = r"(취소|시작|중지|중단|정지|일시정지|재개|계속|승인|버그|오류|에러|수정|추가|개선|삭제|기획|계획|스펙|요구사항|실행|배포|테스트|제보|변경|상태|진행|리팩토링|핫픽스|장애|긴급|문의|이어하기|머지|종료|보류|운영|확장|원인|조사|신고|승인됨|결정|범위|복구|알림|확인)\s?(?:제보\s?|신고\s?|요청\s?)?(버튼|화면|페이지|탭|메뉴|팝업|모달|창|알림|링크|폼|목록|아이콘|문구|배너|메일|메시지|이력|내역|사유|정책|모듈|브랜치|로그|번호|커맨드|명령어|템플릿|양식|레이블|라벨|배지|게시판|트래커|타입|코드|핸들러|차트|위젯|표시줄|바|파일|테이블|필터|카드|폴더|클래스|함수|시간|일자|날짜|팀|도구|매뉴얼|가이드)";
const CUTS: &str = r"\s*[,:()/]\s+|\s+(?:-|→|>)\s+|(?:하고요|하고|고요|는데요|은데요|인데요|는데|은데|인데|던데|지만|니까|으니|됐으니|했으니|났으니|어서|아서|라서|해서|여서|면서|구요|됐고|했고|으며|하며|이며|시고|시고요|지고|했는데|있는데|이고|려고|러|(?:어|아|해|워|려|져|네|군|예|에|돼|세|나|까|와|가|여|죠)요|니다)\s+";

const PATTERNS: &[(Pattern, &str)] = &[
    (Pattern::Negated, NEGATED),
    (
        Pattern::Deferred,
        r"(?:원인|이유|분석|설명|회고|리뷰|왜)\S*\s(?:\S+\s)?(?:나중|천천히|추후|이따|내일)\S*(?:\s(?:보|봐|하|해|찾|알아)\S*(?:\s(?:되|돼|됩)\S*)?)?",
    ),
    (
        Pattern::CausePast,
        r"(?:왜|뭐가|무엇이|누가|어디서|어쩌다|어떻게|이유|원인).*(?:[았었였했됐갔났왔졌렸켰꼈셨봤줬갔썼떴겼엤혔긴난된한간온생]\S*(?:나|까|죠|지|는지|던지|던가|건가|건지|거지|거죠|어|대)요?|던데)",
    ),
    (
        Pattern::Failure,
        r"{broken}|장애|실패|끊|떨어|반송|급락|줄어|늘어|막혔|막힌|꺼진|꺼졌|빠진|빠졌|덮어|느려|느린|멈췄|멈추|지연|급증|튀는|튀었|재시작|유출|터진|죽는|에러|사고|안\s?(?:되|돼|나)",
    ),
    (Pattern::Reason, r"왜|뭐|무슨|무엇|어떻게|누가|어디서|이유|원인|어째서|설명"),
    (
        Pattern::Product,
        r"자동으로|때마다|(?:할|될|갈|올|볼|쓸)\s?때|(?:하|되|나|누르|들어오|지나|르|기|숨기|들|치|열|닫)면\s+[^됩돼되안좋]|(?:사용자|고객|회원|유저|손님|학생|학부모|환자|기사|관리자|담당자|참가자|구독자)(?:들|님|분)*(?:에게|한테|께)\s|(?:화면|페이지|메시지|메일|알림|문구|창|팝업|앱|툴팁|목록)(?:에서|에|으로|로)?\s.*(?:알려|설명|안내)|지도에|목록에",
    ),
    (Pattern::Why, r"왜|어째서"),
    (Pattern::Topic, r"{spec}"),
    (
        Pattern::Asking,
        r"(?:주세요|해줘|줘|주실|줄래|주십|부탁|달라|바랍|주시|세요|하자|합시다|읍시다|야\s?(?:합|해|함|돼|될|됩))",
    ),
    (Pattern::Touches, TOUCHES),
    (Pattern::Polite, POLITE),
    (Pattern::MaybeWish, MAYBE),
    (Pattern::WishAnswer, SURE_QUESTION),
    (Pattern::Compound, UI),
    (Pattern::Cuts, CUTS),
    (
        Pattern::OfScreen,
        r"화면|페이지|버튼|사이드바|메뉴|탭|폼|필터|모달|팝업|색상|색\s|아이콘|요금|가격|구독|readme|리드미|라벨|컬럼",
    ),
    (
        Pattern::NamesSpec,
        r"스펙|명세|기획서|기획안|계획서|요구\s?사항|요건|기준|조건|prd|비목표|ⓡ|ⓓ|설계서|정의서|(?:계획|플랜|범위|로드맵|백로그|마일스톤)(?:에서|에|으로)(?:$|\s)",
    ),
    (
        Pattern::EditsSpec,
        r"{spec}.*(?:(?:추가|수정|변경|삭제|제거|갱신|반영|업데이트|업뎃|제외|포함|이동|완화|강화|조정|작성|정리|개정|보완|분리|교체|기록|명시|구체화|축소|확대|통일|대체|정정){do}|(?:고쳐|바꿔|넣어|빼|지워|옮겨|써|적어|나눠|쪼개|합쳐|늘려|줄여|낮춰|높여|올려|내려|미뤄|당겨|다듬어|남겨|풀어|잡아|맞춰){give}|(?:빼|넣|옮기|바꾸|고치|지우|나누|미루|줄이|늘리|합치|낮추)(?:자|죠|시죠|기로)|(?:뺍|넣읍|옮깁|바꿉|고칩|지웁|미룹|낮춥)시다|바뀌었|바뀌었어요|바뀌었습니다|변경됐|변경되었|변경합니다|다시\s?써)",
    ),
    (Pattern::AsksEnd, r"{ask}"),
    (Pattern::QuestionWord, r"{why}"),
    (
        Pattern::PastFailure,
        r"(?:무슨\s?일|왜|어떻게|어디서|누가|뭐가|원인|이유|뭔지|어쩌다)\S*\s?.*(?:났던|났었|있었|했던|됐던|생겼|생긴|터졌던|죽었던|사라졌던|실패했던|멈췄던|느려졌던|누락됐던|나갔던|났는지|된\s?건지|된건지|한\s?건지|난\s?건지|난건지|간\s?건지|온\s?건지|벌어졌|발생했|그랬)",
    ),
    (Pattern::FromSpec, r"(?:대로|따라|기반|기준으로\s?(?:구현|개발|만들))"),
    (
        Pattern::SpecOpen,
        r"(?:스펙|명세|기획|계획|설계|디자인|시안|승인|확정|문서|합의|결정|리뷰|검토)\S*\s(?:\S+\s)?(?:아직|안\s|덜\s|곧\s|나중)|아직\s(?:\S+\s)?(?:확정|승인|합의|결정|완성|리뷰|검토)|미확정|미정|초안|(?:승인|확정|리뷰|검토|합의)\s?(?:전|대기|예정|되면|나면|받으면|받고)",
    ),
    (Pattern::NotYet, r"왜\s?(?:아직|여태|안\s)|아직\s?(?:도\s)?왜"),
];

struct Grammar {
    clause: Patterns<Sign>,
    whole: Patterns<Sign>,
    patterns: Patterns<Pattern>,
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| Grammar {
    clause: Patterns::compile(LISTS, CLAUSE),
    whole: Patterns::compile(LISTS, WHOLE),
    patterns: Patterns::compile(LISTS, PATTERNS),
});

/// Finds the signs of a sentence.
pub(super) fn read(sentence: &Sentence, found: &mut Vec<SignMatch>) {
    let grammar = &*GRAMMAR;
    let patterns = &grammar.patterns;
    let mut words = sentence.words.clone();
    if let Some(names) = patterns.get(Pattern::Compound) {
        words = names.replace_all(&words, "ⓥ $2").into_owned();
    }
    let mut note = |sign: Sign, words: &str| {
        found.push(SignMatch { sign, words: words.to_owned() });
    };
    if let Some(deferred) = patterns.get(Pattern::Deferred) {
        words = deferred.replace_all(&words, " ").into_owned();
    }
    if patterns.fits(Pattern::Topic, &words) {
        note(Sign::SpecTopic, &words);
    }
    for (sign, whole) in grammar.whole.iter() {
        let open = *sign == Sign::SpecReady && patterns.fits(Pattern::SpecOpen, &words);
        if *sign != Sign::Ask && !open && whole.is_match(&words) {
            note(*sign, &words);
        }
    }
    for (sign, rule) in grammar.clause.iter() {
        if *sign == Sign::SkipPlan && rule.is_match(&words) {
            note(*sign, &words);
        }
    }
    if let Some(negated) = patterns.get(Pattern::Negated) {
        for deed in negated.find_iter(&words) {
            if patterns.fits(Pattern::Touches, deed.as_str()) {
                note(Sign::NoChange, deed.as_str());
            }
        }
        words = negated.replace_all(&words, " ").into_owned();
    }
    let mut asked_for = false;
    for clause in clauses(patterns, &words) {
        let clause = clause.as_str();
        if patterns.edits_spec(clause) {
            note(Sign::SpecChange, clause);
            asked_for = true;
            continue;
        }
        let mut matched = false;
        let polite = patterns.fits(Pattern::Polite, clause);
        for (sign, rule) in grammar.clause.iter() {
            if *sign != Sign::SkipPlan && rule.is_match(clause) {
                let told = matches!(sign, Sign::Defect);
                if told && polite {
                    continue;
                }
                let steers =
                    matches!(sign, Sign::Command | Sign::Status | Sign::GoOn | Sign::Restructure);
                let product = steers && patterns.fits(Pattern::Product, &words);
                note(if product { Sign::Work } else { *sign }, clause);
                matched = true;
                if !told {
                    asked_for = true;
                    break;
                }
            }
        }
        let asks =
            grammar.whole.iter().any(|(sign, rule)| *sign == Sign::Ask && rule.is_match(clause));
        if !matched && !asks && patterns.fits(Pattern::Asking, clause) {
            note(Sign::Work, clause);
        }
    }
    let words = words.trim();
    let told = grammar.whole.iter().any(|(sign, rule)| *sign == Sign::Ask && rule.is_match(words));
    let asks = sentence.asks
        || told
        || patterns.fits(Pattern::QuestionWord, words) && patterns.fits(Pattern::AsksEnd, words);
    if !asks || !told && patterns.fits(Pattern::Polite, words) {
        return;
    }
    note(Sign::Query, words);
    let curious = words.contains("궁금") || words.contains("이유");
    if patterns.fits(Pattern::PastFailure, words) && !patterns.fits(Pattern::NotYet, words) {
        note(Sign::Investigate, words);
    } else if (patterns.fits(Pattern::CausePast, words)
        || patterns.fits(Pattern::Failure, words) && patterns.fits(Pattern::Reason, words))
        && !patterns.fits(Pattern::NotYet, words)
    {
        note(Sign::Cause, words);
    } else if patterns.fits(Pattern::Product, words)
        || patterns.fits(Pattern::Why, words) && !curious && !patterns.fits(Pattern::NotYet, words)
        || patterns.fits(Pattern::MaybeWish, words) && !patterns.fits(Pattern::WishAnswer, words)
    {
        note(Sign::Work, words);
    } else if !asked_for || patterns.fits(Pattern::WishAnswer, words) {
        note(Sign::Ask, words);
    }
}

fn clauses(patterns: &Patterns<Pattern>, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(cuts) = patterns.get(Pattern::Cuts) else { return found };
    let mut from = 0;
    for cut in cuts.find_iter(words) {
        // "이어서" (going on) is a word, and no end of one.
        let before =
            words[..cut.start()].strip_suffix('이').filter(|_| cut.as_str().starts_with("어서"));
        if before.is_some_and(|before| before.is_empty() || before.ends_with(' ')) {
            continue;
        }
        // The ending belongs to the clause that it closes.
        let end = cut.start() + cut.as_str().trim_end_matches([' ', ',', ':', '(', ')', '/']).len();
        found.push(words[from..end].trim().to_owned());
        from = cut.end();
    }
    found.push(words[from..].trim().to_owned());
    found.retain(|clause| !clause.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::super::signs::expand;
    use super::*;
    use crate::domain::intent::Intent;

    #[test]
    fn every_pattern_compiles() {
        let all = CLAUSE.iter().chain(WHOLE).map(|(_, rule)| rule);
        for rule in all.chain(PATTERNS.iter().map(|(_, rule)| rule)) {
            assert!(Regex::new(&expand(LISTS, rule)).is_ok(), "{rule}");
        }
    }

    #[test]
    fn what_stands_there_is_to_say_something_else() {
        for (message, intent) in [
            ("greet.sh에서 \"hello\"를 \"good evening\"으로 바꿔 주세요", Intent::Refinement),
            ("docs/guide.md의 \"color\"를 모두 \"colour\"로 변경해 줘", Intent::Refinement),
            ("plan.md에서 \"월요일\"을 \"화요일\"로 바꿔 줘", Intent::SpecRevision),
            ("`foo`를 `bar`로 바꿔 줘", Intent::Refactor),
        ] {
            assert_eq!(crate::engine::intent::read(message).intent, Some(intent), "{message}");
        }
    }
}
